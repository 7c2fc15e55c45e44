// Implements a file of the file system: accesses go through the I/O servers whose directory holds it while there are
// some, else this process performs them itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "api/access_turn.hpp"
#include "api/file.hpp"
#include "api/held_puts.hpp"
#include "api/held_view.hpp"
#include "api/server_list.hpp"
#include "api/status.hpp"
#include "base/clock.hpp"
#include "base/kept_descriptor.hpp"
#include "bus/local_socket.hpp"
#include "transport/proof.hpp"

namespace hocket::api {
namespace {

using io_client::ServedFile;

int flags_of(int mode) {
  const int both = mode & (HOCKET_FILE_READ | HOCKET_FILE_WRITE);
  const int how = both == HOCKET_FILE_READ ? O_RDONLY : both == HOCKET_FILE_WRITE ? O_WRONLY : O_RDWR;
  // The open must not block on a FIFO, and a terminal must not become the controlling one.
  return how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | ((mode & HOCKET_FILE_CREATE) != 0 ? O_CREAT : 0);
}

// Fails with a text that says how to name or make the file.
int fail_to_open(int error, const OpenArguments& opening) {
  const std::string what = "cannot open " + opening.path;
  if (error == ENXIO) return fail(HOCKET_ERROR_ARGUMENT, what + ": it is not a regular file; name a file");
  if (error != ENOENT) return fail_of_file(error, what);
  const bool creates = (opening.mode & HOCKET_FILE_CREATE) != 0;
  return fail(HOCKET_ERROR_NOT_FOUND, what + ": " + error_text(error) +
                                          (creates ? "; make its directory first"
                                                   : "; HOCKET_FILE_CREATE beside HOCKET_FILE_WRITE makes a file"));
}

// Returns the error of closing a copy of the descriptor. Some file systems (NFS) report lack of room only when a
// descriptor is closed, whichever copy it is.
int error_of_closing(int file) {
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  return copy < 0 || ::close(copy) == 0 || errno == EINTR ? 0 : errno;
}

// Transfers one run without servers. Returns errno. `done` receives the bytes transferred, fewer than `bytes` if a read
// reaches the end of the file.
int transfer(int file, bool writes, std::byte* memory, std::int64_t offset, std::int64_t bytes, std::int64_t& done) {
  for (done = 0; done < bytes;) {
    const auto left = static_cast<std::size_t>(bytes - done);
    const ssize_t n = writes ? pwrite(file, memory + done, left, offset + done)  //
                             : pread(file, memory + done, left, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    // A write that takes nothing would repeat for ever; a read of nothing is the end of the file.
    if (n == 0) return writes ? EIO : 0;
    done += n;
  }
  return 0;
}

// Transfers one run of the file as `transfer` does, from or to wherever its data are in memory.
int transfer_run(int file, const io_client::Local& local, const layout::MappedExtent& run, std::int64_t& done) {
  constexpr std::int64_t most_staged = 1 << 20;
  layout::Walk memory = io_client::memory_walk(local, {run.data, run.data + run.length});
  if (std::byte* const straight = io_client::run_of(memory, local.buffer, 0))
    return transfer(file, local.writes, straight, run.at, run.length, done);
  std::vector<std::byte> staged(static_cast<std::size_t>(std::min(run.length, most_staged)));
  for (done = 0; done < run.length;) {
    const std::int64_t bytes = std::min(run.length - done, most_staged);
    const std::span<std::byte> part = io_client::bytes_at(staged.data(), bytes);
    if (local.writes) layout::gather(memory, local.buffer, 0, part);
    std::int64_t moved = 0;
    const int error = transfer(file, local.writes, part.data(), run.at + done, bytes, moved);
    if (!local.writes) layout::scatter(memory, local.buffer, 0, part.first(static_cast<std::size_t>(moved)));
    done += moved;
    if (error != 0 || moved < bytes) return error;
  }
  return 0;
}

// An open file: a descriptor of this process, and the servers that have it open.
class StoredFile final : public hocket_file, private HeldPut {
 public:
  // `identity` is of the file that `own` has open.
  StoredFile(const OpenArguments& opening, Fd own, const struct stat& identity)
      : own_(own.release()), identity_(identity), participants_(opening.participants) {
    path = opening.path;
    mode = opening.mode;
    group = group_number(opening.group, opening.application);
  }

  int reach(const OpenArguments& opening);

  int access(const FileAccess& access, std::int64_t& got) override;
  int size(std::int64_t& bytes) override;
  int version(std::int64_t& number) override;
  int flush() override;
  int close() override;

 private:
  bool store_held(io_client::WaitStrategy& how) override;
  // Lists the file, or takes it off the list, if servers begin or cease to hold puts.
  void note_held(bool held);
  int access_locked(const FileAccess& access, std::int64_t& got);
  void use(const event::ServerMap& map, std::string& faults);
  int open_at_servers();
  bool renew();
  // Performs an access through the servers, when it is the application's turn.
  io_client::Transferred pass_in_turn(const FileAccess& access);
  // Performs an access without servers.
  int access_by_itself(const FileAccess& access, std::int64_t& got) const;
  // Keeps what is known of data that the server did not store, for the next flush or close.
  void note_loss(ServedFile& one);
  // Drops lost servers.
  void leave_out_lost();
  // Fails if a lost server may still write what this process sent: older data could overwrite newer ones.
  int refuse_if_parting();
  // Waits until the file system has what servers of this node hold that this file does not use. Fails if one hangs.
  int await_others() const;
  // True if some server answers writes before they are in the file.
  bool any_behind() const;
  // Sends a request to each server, waits, and notes the losses.
  template <class Ask>
  void ask_all(Ask ask, io_client::WaitStrategy&& how = io_client::DescriptorWait());
  // Fails if servers did not store what was put, and the caller does not know yet.
  int tell_loss();

  // Returns the descriptor of the file, or -1 if the program has closed it.
  int own() const { return own_.is_ours() ? own_.get() : -1; }

  KeptFd own_;
  struct stat identity_;
  int participants_;
  std::mutex mutex_;                // held by whoever uses what follows
  bool held_ = false;               // the file is in the list of held_puts()
  std::string at_;                  // absolute path
  bool renews_ = false;             // the servers are those of hocketd's map, and not named by the caller
  Time renew_at_{};                 // earliest time of the next renew()
  std::vector<ServedFile> served_;  // in the canonical order
  io_client::FileStriping striping_;
  std::vector<ServedFile> parting_;  // lost servers that may still write
  // Losses that the caller does not know yet: errno of one, bytes in all that lost servers held, and a line about each.
  ServedFile::LostData loss_;
  std::string loss_text_;
  std::string others_lost_;  // a lost server that may have held what other processes put
};

// Connects to the servers whose directory holds the file. Servers of the map that do not answer are left out; of those
// that the caller has named, one at least must answer.
int StoredFile::reach(const OpenArguments& opening) {
  const bool named = !opening.servers.empty();
  const auto map = named ? read_servers(opening.servers) : ask_for_servers();
  if (!map) return named ? fail(HOCKET_ERROR_ARGUMENT, "hocket_file_open: 'servers': " + map.error().text) : HOCKET_OK;
  at_ = io_client::absolute(path);
  renews_ = !named;
  std::string faults;
  use(map.value(), faults);
  if (named && !faults.empty() && served_.empty())
    return fail(HOCKET_ERROR_NO_SERVER, "cannot open " + path + ": " + faults);
  const int refused = open_at_servers();
  if (!named || refused == 0) return HOCKET_OK;
  if (refused == ESTALE)
    return fail(HOCKET_ERROR_IO, "a named server has another file at " + at_ + "; name one on the same file system");
  return fail_of_file(refused, "a named server cannot open " + at_);
}

// Connects to the servers of the map that serve the file, and closes it at others. `faults` gets a text about those
// that cannot be reached.
void StoredFile::use(const event::ServerMap& map, std::string& faults) {
  const std::string secret = transport::secret_beside(bus::default_socket());
  std::vector<ServedFile> used;
  for (const event::ServerMap::MappedServer& server : event::servers_of(map, at_)) {
    const auto had =
        std::find_if(served_.begin(), served_.end(), [&](ServedFile& one) { return one.leads_to(server); });
    ServedFile reached = had == served_.end() ? ServedFile{server, secret} : std::move(*had);
    if (had != served_.end()) served_.erase(had);
    reached.weigh(server.weight);
    if (reached.lost()) {
      faults += (faults.empty() ? "" : "; ") + reached.why();
    } else {
      used.push_back(std::move(reached));
    }
  }
  ask_all([](ServedFile& one) { one.close(); });
  served_ = std::move(used);
}

// Asks for the server map again, because a server has another one. Returns true if bytes have other servers by it.
bool StoredFile::renew() {
  constexpr Duration pause = std::chrono::milliseconds{100}, long_pause = std::chrono::seconds{5};
  if (!renews_ || node_now() < renew_at_) return false;
  const auto map = ask_for_servers();
  renew_at_ = node_now() + (map ? pause : long_pause);
  if (!map) return false;
  std::string faults;
  use(map.value(), faults);
  const bool moved = !io_client::is_placed(served_);
  open_at_servers();
  return moved;
}

// Opens the file at the servers that do not have it open yet; those that cannot open it are left out. If bytes get
// other servers, what servers hold is stored first. Returns an errno of those that refused; 0 if none did.
int StoredFile::open_at_servers() {
  const transport::FileIdentity identity = transport::identity_of(own());
  const AccessTurns* const turns = access_turns.load(std::memory_order_acquire);
  const std::string applicant = turns == nullptr ? "" : turns->applicant(own());
  int refused = 0;
  for (bool again = true; again;) {
    io_client::place(
        served_, at_, identity,
        {.reads = (mode & HOCKET_FILE_READ) != 0, .writes = (mode & HOCKET_FILE_WRITE) != 0, .applicant = applicant});
    io_client::await_answers(served_);
    const std::size_t before = served_.size();
    leave_out_lost();
    for (ServedFile& one : served_) {
      if (!one.failed()) continue;
      const int error = one.take_error();
      if (error != EXDEV) refused = std::max(refused, error);  // EXDEV: the file is not below its directory
    }
    std::erase_if(served_, [](const ServedFile& one) { return one.failed(); });
    again = served_.size() < before;
  }
  return refused;
}

void StoredFile::note_loss(ServedFile& one) {
  const ServedFile::LostData loss = one.take_lost_data();
  if (one.may_have_held()) others_lost_ = one.server().name;
  if (loss.error == 0) return;
  if (loss_.error == 0 || loss_.bytes > 0) loss_.error = loss.error;  // an error of the storage says more
  loss_.bytes += loss.bytes;
  loss_text_ += (loss_text_.empty() ? "" : "; ") + one.text_of(loss);
}

void StoredFile::leave_out_lost() {
  for (ServedFile& one : served_) {
    if (one.lost()) note_loss(one);
    if (one.may_still_write()) parting_.push_back(std::move(one));
  }
  std::erase_if(served_, [](const ServedFile& one) { return one.lost(); });
}

int StoredFile::refuse_if_parting() {
  std::erase_if(parting_, [](ServedFile& one) { return !one.may_still_write(); });
  return parting_.empty() ? HOCKET_OK : fail(HOCKET_ERROR_IO, path + ": " + parting_.front().text_of_parting());
}

// These servers may be of a map that this process does not have yet, or of one that it had before.
int StoredFile::await_others() const {
  const auto is_used = [this](std::uint64_t server) { return io_client::is_among(served_, server); };
  if (!held_view.any() || held_view.await(key_of(identity_.st_dev, identity_.st_ino), is_used)) return HOCKET_OK;
  return fail(HOCKET_ERROR_IO, path + ": an I/O server of this node that holds data of it hangs; end that server");
}

bool StoredFile::any_behind() const {
  return std::any_of(served_.begin(), served_.end(), [](const ServedFile& one) { return one.writes_behind(); });
}

// Performs an access, and repeats it as long as it loses a server. If no server is left, this process performs it
// itself.
int StoredFile::access(const FileAccess& access, std::int64_t& got) {
  const std::lock_guard lock(mutex_);
  const int status = access_locked(access, got);
  if (status == HOCKET_OK && access.local.writes && any_behind()) note_held(true);
  return status;
}

int StoredFile::access_locked(const FileAccess& access, std::int64_t& got) {
  constexpr int most_repeats = 3;  // of a read; a file that grows all the time would repeat for ever
  for (int repeats = 0;;) {
    leave_out_lost();
    if (!io_client::is_placed(served_)) open_at_servers();
    if (const int refused = refuse_if_parting(); refused != HOCKET_OK) return refused;
    if (const int refused = await_others(); refused != HOCKET_OK) return refused;
    if (served_.empty()) return access_by_itself(access, got);
    const io_client::Transferred passed = pass_in_turn(access);
    if (passed.lost) continue;  // the caller still has all bytes: repeat with at least one server less
    if (passed.error != 0)
      return fail_of_file(passed.error,
                          (access.local.writes ? "cannot write " : "cannot read ") + path + " through its I/O servers");
    for (ServedFile& one : served_) one.rely();
    got = passed.there;
    const auto elsewhere = [](const ServedFile& one) { return one.is_elsewhere(); };
    if (std::any_of(served_.begin(), served_.end(), elsewhere) && renew()) continue;
    // The file ends elsewhere if servers hold data behind its end.
    const bool is_short = repeats == 0 && got < access.local.data.count() && any_behind();
    if ((!passed.gap && !is_short) || repeats++ == most_repeats) return HOCKET_OK;
    ask_all([](ServedFile& one) { one.store(); });
  }
}

// Only an access through servers asks here: without them, this process's own calls ask for their turn.
io_client::Transferred StoredFile::pass_in_turn(const FileAccess& access) {
  const AccessPath way = access.operation == 0 ? AccessPath::servers : AccessPath::servers_together;
  AccessTurn turn{access.local.writes, own(), access.local.data.count(), way};
  const io_client::Transferred passed = pass(served_, striping_.of(served_), access, participants_);
  if (!passed.lost && passed.error == 0) turn.moved(passed.there);
  return passed;
}

int StoredFile::access_by_itself(const FileAccess& access, std::int64_t& got) const {
  const io_client::Local& local = access.local;
  layout::Segments segments = local.view.segments(local.data);
  AccessTurn turn{local.writes, own(), local.data.count(), AccessPath::process};
  got = 0;
  while (const auto run = segments.next()) {
    std::int64_t done = 0;
    const int error = transfer_run(own(), local, *run, done);
    if (error != 0) return fail_of_file(error, (local.writes ? "cannot write " : "cannot read ") + path);
    got += done;
    if (done < run->length) break;  // the end of the file
  }
  turn.moved(got);
  return HOCKET_OK;
}

int StoredFile::size(std::int64_t& bytes) {
  const std::lock_guard lock(mutex_);
  if (any_behind()) ask_all([](ServedFile& one) { one.store(); });
  note_held(false);
  if (const int refused = await_others(); refused != HOCKET_OK) return refused;
  struct stat status {};
  if (fstat(own(), &status) != 0) return fail_of_file(errno, "cannot determine the length of " + path);
  bytes = status.st_size;
  return HOCKET_OK;
}

// Only data sets have versions.
int StoredFile::version(std::int64_t&) {
  return fail(HOCKET_ERROR_ARGUMENT,
              "hocket_file_version: " + path + " is a file; data sets (hocket:/NAME) have versions");
}

template <class Ask>
void StoredFile::ask_all(Ask ask, io_client::WaitStrategy&& how) {
  leave_out_lost();
  for (ServedFile& one : served_) ask(one);
  io_client::await_answers(served_, std::move(how));
  for (ServedFile& one : served_) note_loss(one);
  leave_out_lost();
}

void StoredFile::note_held(bool held) {
  if (held == held_) return;
  held_ = held;
  held ? held_puts().add(*this, identity_) : held_puts().remove(*this);
}

bool StoredFile::store_held(io_client::WaitStrategy& how) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  ask_all([](ServedFile& one) { one.store(); }, std::move(how));
  held_ = false;
  return true;
}

int StoredFile::tell_loss() {
  const ServedFile::LostData loss = std::exchange(loss_, {});
  const std::string text = path + ": " + std::exchange(loss_text_, {});
  if (loss.error == 0) return HOCKET_OK;
  const std::string advice = "; put again what was put since the last hocket_file_flush";
  return fail(loss.error == ENOSPC || loss.error == EDQUOT ? HOCKET_ERROR_NO_SPACE : HOCKET_ERROR_IO, text + advice);
}

// Lets the servers store what they hold, then stores what this process wrote itself.
int StoredFile::flush() {
  const std::lock_guard lock(mutex_);
  if (!served_.empty()) {
    const AccessTurn turn{"hocket_file_flush", own()};
    ask_all([](ServedFile& one) { one.sync(); });
  }
  note_held(false);
  const std::string others = std::exchange(others_lost_, {});
  if (const int told = tell_loss(); told != HOCKET_OK) return told;
  if (!others.empty())
    return fail(HOCKET_ERROR_IO, path + ": the I/O server " + others +
                                     " was lost, which answers writes before they are in the file: what other "
                                     "processes put may be missing; they learn it from their hocket_file_flush");
  const bool writes = (mode & HOCKET_FILE_WRITE) != 0;
  // EINVAL: this file cannot be flushed, which is no error of its data.
  if (!writes || fdatasync(own()) == 0 || errno == EINVAL) return HOCKET_OK;
  return fail_of_file(errno, "cannot store " + path);
}

int StoredFile::close() {
  const std::lock_guard lock(mutex_);
  note_held(false);
  // Servers first: they may still have data of this file.
  {
    std::optional<AccessTurn> turn;
    if (any_behind() && (mode & HOCKET_FILE_WRITE) != 0) turn.emplace("hocket_file_close", own());
    ask_all([](ServedFile& one) { one.close(); });
  }
  const int told = tell_loss();
  if (told != HOCKET_OK || (mode & HOCKET_FILE_WRITE) == 0) return told;
  const int error = error_of_closing(own());
  return error == 0 ? HOCKET_OK : fail_of_file(error, "cannot store " + path);
}

}  // namespace

int open_stored(const OpenArguments& opening, std::unique_ptr<hocket_file>& file) {
  constexpr mode_t for_all = 0666;  // before the umask
  Fd own{::open(opening.path.c_str(), flags_of(opening.mode), for_all)};
  if (!own) return fail_to_open(errno, opening);
  struct stat status {};
  if (fstat(own.get(), &status) != 0) return fail_to_open(errno, opening);
  if (!S_ISREG(status.st_mode)) return fail_to_open(S_ISDIR(status.st_mode) ? EISDIR : ENXIO, opening);
  auto stored = std::make_unique<StoredFile>(opening, std::move(own), status);
  const int reached = stored->reach(opening);
  if (reached == HOCKET_OK) file = std::move(stored);
  return reached;
}

int fail_of_file(int error, const std::string& what) {
  const auto told = [&](int code, const char* advice) { return fail(code, what + ": " + error_text(error) + advice); };
  switch (error) {
    case ENOENT: return told(HOCKET_ERROR_NOT_FOUND, "; check the path");
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG: return told(HOCKET_ERROR_ARGUMENT, "; name a file");
    case EACCES:
    case EPERM:
    case EROFS: return told(HOCKET_ERROR_ACCESS, "; change its permissions, or name another file");
    case ENOSPC:
    case EDQUOT: return told(HOCKET_ERROR_NO_SPACE, "; remove files, or write elsewhere");
    case ENOMEM: return told(HOCKET_ERROR_MEMORY, "");
    default: return told(HOCKET_ERROR_IO, "; check the storage");
  }
}

}  // namespace hocket::api
