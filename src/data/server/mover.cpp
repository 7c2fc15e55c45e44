#include "server/mover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/result.hpp"
#include "io_client/striped_set.hpp"
#include "layout/stripes.hpp"
#include "transport/proof.hpp"

namespace hocket::server {
namespace {

using io_client::ServedFile;

constexpr std::int64_t stripes_at_once = 8;
constexpr Duration join_limit = std::chrono::seconds{1};  // a copy has its room at once, or not at all

// Reads what there is; the rest of `into` stays as it is. False after an error.
bool read_memory(int memory, std::span<std::byte> into, std::int64_t at) {
  while (!into.empty()) {
    const ssize_t got = pread(memory, into.data(), into.size(), at);
    if (got < 0) return false;
    if (got == 0) return true;
    into = into.subspan(static_cast<std::size_t>(got));
    at += got;
  }
  return true;
}

// One move. Functions return false after a failure, which why() describes.
class Mover {
 public:
  Mover(const DataSetMove& move, const std::atomic<bool>& gives_up)
      : move_(move), gives_up_(gives_up), moved_(move.moved) {
    if (!move.secret_file.empty())
      if (auto secret = transport::read_secret(move.secret_file)) secret_ = std::move(secret).value();
  }

  bool run();
  const std::string& why() const { return why_; }

 private:
  bool copy(const DataSetMove::Source& source, std::uint64_t number);
  bool open_copy(std::int64_t length, std::uint64_t number);
  bool open_parts(const DataSetMove::Source& source);
  bool copy_stripes(const DataSetMove::Source& source, layout::Extent file);
  bool adopt();
  bool await(std::span<ServedFile> files);
  bool fail(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool fail(std::span<ServedFile> files, int error);

  const DataSetMove& move_;
  const std::atomic<bool>& gives_up_;
  MovedName moved_;  // with the numbers of the copies
  std::string secret_;
  std::vector<ServedFile> to_;    // the new home, then the parts of the copy that is written
  std::vector<ServedFile> from_;  // the parts of the version that is read
  std::vector<std::byte> data_ = std::vector<std::byte>(stripes_at_once * layout::stripe_bytes);
  std::string why_;
};

bool Mover::run() {
  to_.emplace_back(move_.to.front(), secret_);
  for (std::size_t i = 0; i < moved_.versions.size(); ++i) {
    if (!move_.sources[i].memory) continue;
    moved_.versions[i].copy = transport::new_number();
    if (!copy(move_.sources[i], moved_.versions[i].copy)) return false;
  }
  return adopt();
}

bool Mover::fail(std::span<ServedFile> files, int error) {
  for (const ServedFile& file : files)
    if (file.lost()) return fail(fmt::format("{}: {}", file.server().name, file.why()));
  return fail(fmt::format("{}: {}", files.front().server().name, error_text(error)));
}

// Waits for all answers. False if this server ends meanwhile, or a server was lost, or reported an error.
bool Mover::await(std::span<ServedFile> files) {
  io_client::wait(files, io_client::DescriptorWait(),
                  [&] { return io_client::StepResult{.done = io_client::pending(files) == 0 || gives_up_}; });
  if (gives_up_) return fail("this server ends");
  const int error = io_client::take_error(files);
  return error == 0 && !io_client::any_lost(files) ? true : fail(files, error);
}

bool Mover::open_copy(std::int64_t length, std::uint64_t number) {
  const std::string name = std::to_string(number);
  transport::DataSet what;
  what.name = name;
  what.application = "hocket-server";
  what.writes = true;
  what.group = transport::new_number();
  what.patience = join_limit;
  what.moves = true;
  to_.front().join(what);
  if (!await(to_)) return false;
  if (!io_client::needs_parts({0, length})) return true;
  const int error = io_client::open_parts(to_, move_.to, secret_, true, io_client::DescriptorWait());
  return error == 0 ? true : fail(to_, error);
}

bool Mover::open_parts(const DataSetMove::Source& source) {
  for (std::size_t i = 1; i < source.servers.size(); ++i) {
    from_.emplace_back(source.servers[i], secret_);
    from_.back().open_part(source.parts, false, source.length);
  }
  return from_.empty() || await(from_);
}

bool Mover::copy(const DataSetMove::Source& source, std::uint64_t number) {
  from_.clear();
  if (!open_copy(source.length, number) || !open_parts(source)) return false;
  const auto step = static_cast<std::int64_t>(data_.size());
  for (std::int64_t at = 0; at < source.length; at += step)
    if (!copy_stripes(source, {at, std::min(at + step, source.length)})) return false;
  // The memory of a version that was lost meanwhile has been freed, and reads as zeros.
  if ((fcntl(source.memory.get(), F_GET_SEALS) & F_SEAL_GROW) != 0) return fail("a part of it was lost");
  const int error = io_client::close_version(to_, source.length, io_client::DescriptorWait());
  if (error != 0) return fail(to_, error);
  to_.erase(to_.begin() + 1, to_.end());
  return true;
}

// Copies some whole stripes, the last of which may end with the version. All are read before any is written.
bool Mover::copy_stripes(const DataSetMove::Source& source, layout::Extent file) {
  std::fill(data_.begin(), data_.end(), std::byte{0});
  int error = 0;
  const auto note = [&error](int its_error, std::int64_t) { error = error == 0 ? its_error : error; };
  const auto each = [&](auto&& use) {
    for (std::int64_t at = file.first; at < file.end; at += layout::stripe_bytes) {
      const std::int64_t length = std::min(layout::stripe_bytes, file.end - at);
      use(at, std::span{data_}.subspan(static_cast<std::size_t>(at - file.first), static_cast<std::size_t>(length)));
    }
  };
  each([&](std::int64_t at, std::span<std::byte> data) {
    const std::size_t server = layout::server_of(at, from_.size() + 1);
    if (server == 0) {
      if (!read_memory(source.memory.get(), data, at)) note(errno, 0);
    } else {
      from_[server - 1].link().read(from_[server - 1].handle(), transport::OffsetPlace{at}, 0, data, note);
    }
  });
  if (!from_.empty() && !await(from_)) return false;
  if (error != 0) return fail("its bytes cannot be read: " + error_text(error));
  each([&](std::int64_t at, std::span<std::byte> data) {
    ServedFile& to = to_[layout::server_of(at, to_.size())];
    to.link().write(to.handle(), transport::OffsetPlace{at}, 0, data, note);
  });
  if (!await(to_)) return false;
  return error == 0 ? true : fail(to_, error);
}

bool Mover::adopt() {
  if (to_.front().lost()) return fail(to_, 0);
  int error = 0;
  to_.front().link().adopt(text_of(moved_), [&error](int its_error, std::int64_t) { error = its_error; });
  if (!await(to_)) return false;
  return error == 0 ? true : fail(to_, error);
}

}  // namespace

std::string carry_out(const DataSetMove& move, const std::atomic<bool>& gives_up) {
  try {
    Mover mover{move, gives_up};
    return mover.run() ? std::string{} : mover.why();
  } catch (const std::bad_alloc&) {
    return error_text(ENOMEM);
  }
}

}  // namespace hocket::server
