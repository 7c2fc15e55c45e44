#include "collective/servers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "collective/agreement.hpp"
#include "collective/beating_wait.hpp"
#include "collective/brake.hpp"
#include "collective/mpi_wait.hpp"
#include "mpi_shim/warn.hpp"
#include "process/identity.hpp"
#include "process/server_map.hpp"
#include "transport/proof.hpp"

namespace hocket::runtime::collective {
namespace {

static_assert(event::most_servers_of_file <= 64);  // one bit each in Verdict::lost

// Returns the errno of an access. A short read is an error: CollectiveFile::prepare has cut off what lies behind the
// end of the file.
int error_of(const io_client::Transferred& done, const Local& local) {
  if (done.error != 0 || local.writes || done.there == local.data.count()) return done.error;
  return EIO;
}

}  // namespace

// Keeps the error of data that a server had answered and that are not in the file, and says so.
void FileServers::note_loss(ServedFile& file) {
  const ServedFile::LostData loss = file.take_lost_data();
  if (loss.error == 0) return;
  loss_ = one_of(loss_, loss.error);
  warn(path_ + ": " + file.text_of(loss));
}

// Closes servers that are no longer used, and waits for their answers.
void FileServers::close(std::vector<ServedFile>& files) {
  for (ServedFile& file : files) file.close();
  io_client::await_answers(files);
  for (ServedFile& file : files) {
    note_loss(file);
    if (!file.may_still_write()) continue;
    warn(path_ + ": " + file.text_of_parting());
    parting_.push_back(std::move(file));
  }
  files.clear();
}

bool FileServers::holds_own_writes() {
  return std::any_of(files_.begin(), files_.end(), [](ServedFile& file) {
    file.poll();
    return !file.lost() && file.link().early(file.handle()).are_held();
  });
}

bool FileServers::must_wait() {
  std::erase_if(parting_, [](ServedFile& file) { return !file.may_still_write(); });
  return !parting_.empty();
}

// ---- the map -----------------------------------------------------------------------------------------------------

std::int64_t FileServers::news() {
  offered_ = server_map();
  if (offered_ == seen_ || (!map_ && offered_->servers.empty())) return -1;
  return static_cast<std::int64_t>(event::text_of(offered_->servers).size());
}

// Broadcasts rank 0's map, a number for its operations that no other application uses, and its applicant. Returns false
// if MPI failed or the text is damaged. Collective.
bool FileServers::receive(const Team& team, std::int64_t map_bytes, const std::string& applicant) {
  std::string text;
  std::array<std::int64_t, 3> numbers{};
  if (team.rank == 0) {
    seen_ = offered_;
    text = event::text_of(seen_->servers) + applicant;
    numbers = {seen_->epoch, to_ns(node_now()) << 16, static_cast<std::int64_t>(applicant.size())};
  }
  if (!mpi::broadcast(team.comm, 0, numbers.data(), sizeof numbers)) return false;
  text.resize(static_cast<std::size_t>(map_bytes + numbers[2]));
  if (!text.empty() && !mpi::broadcast(team.comm, 0, text.data(), static_cast<std::int64_t>(text.size()))) return false;
  Result<event::ServerMap> map =
      event::parse_server_map(numbers[0], std::string_view{text}.substr(0, static_cast<std::size_t>(map_bytes)));
  if (!map) return false;
  map_ = std::move(map).value();
  operation_ = static_cast<std::uint64_t>(numbers[1]);
  applicant_ = text.substr(static_cast<std::size_t>(map_bytes));
  return true;
}

// Connects to the servers of the map, and closes the file at those that are no longer used.
void FileServers::reach() {
  const std::string secret = transport::secret_beside(identity().settings.socket);
  std::vector<ServedFile> before = std::exchange(files_, {});
  if (most_ > 0) {
    for (const event::ServerMap::MappedServer& server : event::servers_of(*map_, path_)) {
      const auto had =
          std::find_if(before.begin(), before.end(), [&](ServedFile& file) { return file.leads_to(server); });
      if (had == before.end()) {
        files_.emplace_back(server, secret);
      } else {
        files_.push_back(std::move(*had));
        files_.back().weigh(server.weight);
        before.erase(had);
      }
    }
  }
  close(before);
}

// A server gets the identity of this rank's own descriptor: the path may name another file by now.
void FileServers::place(Team& team) {
  const transport::FileIdentity own = transport::identity_of(team.storage.descriptor());
  int error = 0;
  do {
    io_client::place(files_, path_, own,
                     {.reads = (mode_ & MPI_MODE_WRONLY) == 0,
                      .writes = (mode_ & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0,
                      .applicant = applicant_});
    io_client::await_answers(files_, MpiWait(team.comm));
    for (ServedFile& file : files_) {
      if (!file.lost() && file.failed() && file.take_error() == ESTALE && team.rank == 0)
        warn("the I/O server " + file.server().name + " has another file at " + path_ + ": it is not used");
    }
  } while (leave_out(team, error));
}

void FileServers::adopt(Team& team, const std::string& path, int mode, std::int64_t map_bytes, std::int64_t most,
                        const std::string& applicant) {
  most_ = most;
  // Without a valid map, the file uses no servers and the ranks aggregate.
  if (map_bytes >= 0 && !receive(team, map_bytes, applicant)) map_ = event::ServerMap();
  path_ = path;
  mode_ = mode;
  reach();
  place(team);
  // If data are held, a limit must not place a byte elsewhere than another opening does, which has no limit.
  if (behind_ || count() <= most_) return;
  std::vector<ServedFile> rest{std::make_move_iterator(files_.begin() + most_), std::make_move_iterator(files_.end())};
  files_.erase(files_.begin() + most_, files_.end());
  close(rest);
}

bool FileServers::leave_out(Team& team, int& error) {
  // One rank's message: bit i of `lost` is set if server i cannot be used.
  struct Verdict {
    std::int64_t lost = 0;
    std::int64_t may_write = 0;  // 1 if one of these, or of earlier ones, may still write what the rank sent
    std::int64_t error = 0;
    std::int64_t stood_ns = 0;
    std::int64_t behind = 0;  // 1: a server writes behind
  } own{0, 0, error, team.stood.count(), 0};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].failed()) own.lost |= std::int64_t{1} << i;
    if (files_[i].may_still_write()) own.may_write = 1;
    if (files_[i].writes_behind()) own.behind = 1;
  }
  if (must_wait()) own.may_write = 1;
  const std::optional<std::vector<Verdict>> all = tell_all(team, own);
  // If MPI failed, no rank knows which servers the others can use, so all are left out.
  std::int64_t left = all ? 0 : -1;
  blocked_ = behind_ = false;
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    left |= (*all)[i].lost;
    blocked_ |= (*all)[i].may_write != 0;
    error = one_of(error, static_cast<int>((*all)[i].error));
    behind_ |= (*all)[i].behind != 0;
  }
  count_standstill(team, all ? Duration{all->front().stood_ns} : Duration{});
  std::vector<ServedFile> kept, closed;
  for (std::size_t i = 0; i < files_.size(); ++i) (left >> i & 1 ? closed : kept).push_back(std::move(files_[i]));
  close(closed);
  files_ = std::move(kept);
  if (blocked_) error = one_of(error, EIO);
  return left != 0;
}

// ---- an access ---------------------------------------------------------------------------------------------------

// A data set has no map. Its stripes stay where they are, whatever the weights.
layout::Striping FileServers::striping() { return map_ ? striping_.of(files_) : layout::Striping(files_.size()); }

int FileServers::access_own(const Local& local, std::int64_t window, const io_client::Terms& how) {
  if (local.data.count() == 0) return 0;
  layout::StripeChunks chunks(local.view, local.data, striping(), window);
  const io_client::Transferred done = io_client::transfer(
      files_, local, [&] { return chunks.next(); }, how, io_client::DescriptorWait());
  return done.lost ? EIO : error_of(done, local);
}

void FileServers::use(OpenedVersion version) {
  files_.push_back(std::move(version.home));
  wanted_ = std::move(version.servers);
  writes_ = version.writes;
  operation_ = version.operation;
}

int FileServers::reach_parts(Extent file, io_client::WaitStrategy&& how) {
  if (knows_parts_ || !io_client::needs_parts(file)) return 0;
  const int error = io_client::open_parts(files_, wanted_, transport::secret_beside(identity().settings.socket),
                                          writes_, std::move(how));
  knows_parts_ = error == 0;
  return error;
}

int FileServers::leave(std::int64_t end) {
  const int error = io_client::close_version(files_, writes_ ? end : 0, io_client::DescriptorWait());
  files_.clear();
  return error == ECONNRESET ? EIO : error;
}

std::optional<int> FileServers::access(Team& team, const Local& local, std::int64_t window, io_client::Terms how,
                                       Brake* brake) {
  how.operation = ++operation_;
  how.participants = team.ranks;
  how.gate = brake;
  layout::StripeChunks chunks(local.view, local.data, striping(), window);
  const io_client::Transferred done = io_client::transfer(
      files_, local, [&] { return chunks.next(); }, how, MpiWait(team.comm));
  // The requests at a lost server end with an error, which is none of the storage: the access is repeated.
  int error = done.lost ? 0 : error_of(done, local);
  if (brake && !brake->finish()) error = EIO;
  if (leave_out(team, error)) {
    if (map_) place(team);
    if (!blocked_) return std::nullopt;
    error = one_of(error, EIO);
  }
  for (ServedFile& file : files_) file.rely();
  if (local.writes && behind_) holds_ = true;
  return error;
}

void FileServers::store() {
  for (ServedFile& file : files_) file.store();
  io_client::await_answers(files_, BeatingWait());
  for (ServedFile& file : files_) note_loss(file);
  holds_ = false;
}

int FileServers::sync(const Team& team) {
  for (ServedFile& file : files_) file.sync();
  io_client::await_answers(files_, MpiWait(team.comm));
  for (ServedFile& file : files_) note_loss(file);
  holds_ = false;
  return std::exchange(loss_, 0);
}

int FileServers::finish() {
  close(files_);
  holds_ = false;
  return std::exchange(loss_, 0);
}

}  // namespace hocket::runtime::collective
