#include "io_client/served_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/fnv.hpp"

namespace hocket::io_client {
namespace {

constexpr Duration connect_bound = std::chrono::seconds{2};

}  // namespace

ServedFile::ServedFile(const event::ServerMap::MappedServer& server, std::string_view secret) : server_(server) {
  auto connected = transport::ServerLink::connect(server.addresses, secret, connect_bound);
  if (connected) {
    link_ = std::move(connected).value();
  } else {
    why_ = connected.error().text;
  }
}

bool ServedFile::leads_to(const event::ServerMap::MappedServer& server) {
  poll();
  return !lost() && server_.name == server.name && server_.addresses == server.addresses;
}

void ServedFile::open(const std::string& path, const transport::FileIdentity& wanted, const transport::OpenMode& how) {
  if (lost()) return;
  placement_ = how.placement;
  // The link runs its callbacks itself, so it is there when they are called.
  link_->open(path, wanted, how,
              [link = link_.get(), answers = answers_](int error, transport::ServerLink::Handle handle) {
                answers->take(error);
                answers->open = error == 0;
                answers->handle = handle;
                answers->behind = error == 0 && link->writes_behind(handle);
              });
}

void ServedFile::join(const transport::DataSet& what) {
  if (lost()) return;
  link_->join(what, [answers = answers_](int error, transport::ServerLink::Handle handle, std::int64_t version,
                                         std::int64_t bytes) {
    answers->take(error);
    answers->open = error == 0;
    answers->handle = handle;
    answers->version = version;
    answers->bytes = bytes;
  });
}

void ServedFile::locate(std::string_view wanted) {
  if (failed()) return;
  link_->locate(handle(), wanted, [answers = answers_](int error, std::uint64_t number, std::string_view servers) {
    answers->take(error);
    answers->parts = number;
    answers->servers = servers;
  });
}

void ServedFile::open_part(std::uint64_t number, bool writes, std::int64_t length) {
  if (lost()) return;
  link_->open_part(number, writes, length, [answers = answers_](int error, transport::ServerLink::Handle handle) {
    answers->take(error);
    answers->open = error == 0;
    answers->handle = handle;
  });
}

void ServedFile::sync() {
  if (lost()) return;
  link_->sync(handle(), [answers = answers_](int error, std::int64_t) { answers->take(error); });
}

// The answer says if writes that were answered early are in the file, or if readers will see a version.
void ServedFile::close(std::int64_t end) {
  if (failed()) return;
  link_->close(
      handle(), [answers = answers_](int error, std::int64_t) { answers->take(error); }, end);
}

void ServedFile::store(event::Placement placement) {
  if (failed()) return;
  placement_ = placement;
  link_->store(handle(), placement, [](int, std::int64_t) {});
}

void ServedFile::show(std::string_view serialised) {
  if (lost() || view_ == serialised) return;
  link_->view(handle(), view_number, serialised);
  view_ = serialised;
}

bool ServedFile::poll() {
  if (lost()) return false;
  const bool moved = link_->poll();
  if (link_->failed() && link_->pending() == 0) lose(link_->failure_text());
  return moved;
}

void ServedFile::lose(std::string why) {
  if (lost()) return;
  answers_->early = link_->early(handle());
  parting_ = link_->part();
  link_.reset();
  why_ = std::move(why);
}

void ServedFile::rely() {
  if (!lost()) relied_ = link_->early(handle()).answered;
}

// An answer that did not come says nothing of the data.
ServedFile::LostData ServedFile::take_lost_data() {
  int error = take_error();
  if (!answers_->open) return {};
  if (!lost()) return {error, 0};
  if (error == ECONNRESET || error == EPIPE || error == EPROTO) error = 0;
  const std::int64_t held = std::exchange(relied_, 0) - answers_->early.stored;
  const int known = std::exchange(answers_->early.error, 0);
  if (error != 0 || known != 0) return {error != 0 ? error : known, 0};
  return held > 0 ? LostData{EIO, held} : LostData{};
}

std::string ServedFile::text_of_parting() const {
  return "the I/O server " + server_.name + " may still write what it was sent, but does not answer (" + why_ +
         "): the file is not accessed until it has ended; end it if it hangs";
}

std::string ServedFile::text_of(const LostData& loss) const {
  const std::string name = "the I/O server " + server_.name;
  if (loss.bytes == 0) return name + " could not store what was written: " + error_text(loss.error);
  return name + " was lost with " + std::to_string(loss.bytes) + " bytes that it had not stored yet (" + why_ + ")";
}

namespace {

event::Placement placement_of(std::span<const ServedFile> files) {
  std::vector<std::string> names;
  std::vector<int> weights;
  for (const ServedFile& file : files) {
    names.push_back(file.server().name);
    weights.push_back(file.server().weight);
  }
  return event::placement_of(names, weights);
}

}  // namespace

void place(std::span<ServedFile> files, const std::string& path, const transport::FileIdentity& wanted,
           transport::OpenMode how) {
  how.placement = placement_of(files);
  for (ServedFile& file : files) {
    if (file.failed()) {
      file.open(path, wanted, how);
    } else if (file.placement() != how.placement) {
      file.store(how.placement);
    }
  }
}

bool is_placed(std::span<const ServedFile> files) {
  const event::Placement placement = placement_of(files);
  return std::all_of(files.begin(), files.end(), [&](const ServedFile& file) { return file.placement() == placement; });
}

const layout::Striping& FileStriping::of(std::span<const ServedFile> files) {
  const auto is_same = [](const ServedFile& file, int weight) { return file.server().weight == weight; };
  if (std::equal(files.begin(), files.end(), weights_.begin(), weights_.end(), is_same)) return striping_;
  weights_.clear();
  for (const ServedFile& file : files) weights_.push_back(file.server().weight);
  striping_ = layout::Striping(weights_);
  return striping_;
}

bool is_among(std::span<const ServedFile> files, std::uint64_t server) {
  return std::any_of(files.begin(), files.end(),
                     [&](const ServedFile& one) { return fnv1a(one.server().name) == server; });
}

std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real{realpath(path.c_str(), nullptr), &std::free};
  return real ? real.get() : path;
}

}  // namespace hocket::io_client
