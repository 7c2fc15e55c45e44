// Implements a file of the file system: accesses go through the I/O servers whose directory holds it while there are
// some, else this process performs them itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "api/file.hpp"
#include "api/served.hpp"
#include "api/server_list.hpp"
#include "api/status.hpp"
#include "base/descriptor.hpp"

namespace hocket::api {
namespace {

// Resolves links, because servers compare the path with their directory.
std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real{realpath(path.c_str(), nullptr), &std::free};
  return real ? real.get() : path;
}

int flags_of(int mode) {
  const int both = mode & (HOCKET_READ | HOCKET_WRITE);
  const int how = both == HOCKET_READ ? O_RDONLY : both == HOCKET_WRITE ? O_WRONLY : O_RDWR;
  // The open must not block on a FIFO, and a terminal must not become the controlling one.
  return how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | ((mode & HOCKET_CREATE) != 0 ? O_CREAT : 0);
}

// Fails with a text that says how to name or make the file.
int fail_to_open(int error, const Opening& opening) {
  const std::string what = "cannot open " + opening.path;
  if (error == ENXIO) return fail(HOCKET_ERROR_ARGUMENT, what + ": it is no regular file; name a file");
  if (error != ENOENT) return fail_of_file(error, what);
  const bool creates = (opening.mode & HOCKET_CREATE) != 0;
  return fail(HOCKET_ERROR_NOT_FOUND, what + ": " + error_text(error) +
                                          (creates ? "; make the directory that it is to be in"
                                                   : "; HOCKET_CREATE beside HOCKET_WRITE makes a file"));
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

// An open file: a descriptor of this process, and the servers that have it open.
class StoredFile final : public hocket_file {
 public:
  StoredFile(const Opening& opening, Fd own) : own_(std::move(own)), participants_(opening.participants) {
    path = opening.path;
    mode = opening.mode;
    group = group_number(opening.group, opening.application);
  }

  int reach(const Opening& opening);

  int access(const Access& access, std::int64_t& got) override;
  int size(std::int64_t& bytes) override;
  int version(std::int64_t& number) override;
  int flush() override;
  int close() override;

 private:
  int ask_to_open(const std::string& at, bool named);
  // Performs an access without servers.
  int access_by_itself(const Access& access, std::int64_t& got) const;
  // Drops lost servers. Returns true if there were any.
  bool leave_out_lost();
  // Makes servers write what they hold back, and keeps the error for the next flush or close.
  void sync_behind();
  // Sends a request to each server and waits. Returns the first errno, ignoring servers that are lost.
  template <class Ask>
  int ask_all(Ask ask);
  // Fails with an error of what servers wrote behind, if there is one.
  int tell_behind(int error);

  Fd own_;
  int participants_;
  std::vector<Served> served_;
  std::string behind_lost_;  // names of servers that were lost together with answered writes
  int behind_error_ = 0;     // errno of a write behind that the caller does not know yet
};

// Connects to the servers whose directory holds the file. Servers of the map that do not answer are left out; of those
// that the caller has named, one at least must answer.
int StoredFile::reach(const Opening& opening) {
  const bool named = !opening.servers.empty();
  const auto map = named ? read_servers(opening.servers) : ask_for_servers();
  if (!map) return named ? fail(HOCKET_ERROR_ARGUMENT, "hocket_open: 'servers': " + map.error().text) : HOCKET_OK;
  const std::string at = absolute(path);
  std::string faults;
  bool below = false;
  for (const event::ServerMap::Server& server : map.value().servers) {
    if (!serves(server, at)) continue;
    below = true;
    auto reached = Served::reach(server);
    if (reached) {
      served_.push_back(std::move(reached).value());
    } else {
      faults += (faults.empty() ? "" : "; ") + reached.error().text;
    }
  }
  if (named && below && served_.empty()) return fail(HOCKET_ERROR_NO_SERVER, "cannot open " + path + ": " + faults);
  return ask_to_open(at, named);
}

// Opens the file at all servers; those that cannot open it are left out. If the caller has named them, their refusal is
// an error.
int StoredFile::ask_to_open(const std::string& at, bool named) {
  const transport::OpenMode how{.reads = (mode & HOCKET_READ) != 0, .writes = (mode & HOCKET_WRITE) != 0};
  std::vector<int> errors(served_.size(), 0);
  for (std::size_t i = 0; i < served_.size(); ++i) {
    Served& one = served_[i];
    one.link().open(at, how, [&one, &error = errors[i]](int its_error, transport::ServerLink::Handle handle) {
      one.handle = handle;
      one.behind = one.link().writes_behind(handle);
      error = its_error;
    });
  }
  settle(served_);
  int refused = 0;
  std::vector<Served> kept;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    if (!served_[i].lost() && errors[i] == 0) kept.push_back(std::move(served_[i]));
    if (errors[i] != EXDEV) refused = std::max(refused, errors[i]);  // EXDEV: the file is not below its directory
  }
  served_ = std::move(kept);
  if (!named || refused == 0) return HOCKET_OK;
  return fail_of_file(refused, "a named server cannot open " + at);
}

bool StoredFile::leave_out_lost() {
  for (const Served& one : served_)
    if (one.lost() && one.behind) behind_lost_ += (behind_lost_.empty() ? "" : ", ") + one.server().name;
  return std::erase_if(served_, [](const Served& one) { return one.lost(); }) > 0;
}

void StoredFile::sync_behind() {
  const int error = ask_all([](Served& one, auto done) {
    if (one.behind) one.link().sync(one.handle, done);
  });
  if (behind_error_ == 0) behind_error_ = error;
}

// Performs an access, and repeats it as long as it loses a server. If no server is left, this process performs it
// itself.
int StoredFile::access(const Access& access, std::int64_t& got) {
  constexpr int most_repeats = 3;  // of a read; a file that grows all the time would repeat for ever
  for (int repeats = 0;;) {
    // The remaining servers get other stripes from now on, so no data of these may still be held elsewhere.
    if (leave_out_lost()) sync_behind();
    if (served_.empty()) return access_by_itself(access, got);
    const Passed passed = pass(served_, access, participants_);
    if (passed.lost) continue;  // the caller still has all bytes: repeat with at least one server less
    if (passed.error != 0)
      return fail_of_file(passed.error,
                          (access.writes ? "cannot write " : "cannot read ") + path + " through its I/O servers");
    got = passed.got;
    if (!passed.gap || repeats++ == most_repeats) return HOCKET_OK;
    sync_behind();
  }
}

int StoredFile::access_by_itself(const Access& access, std::int64_t& got) const {
  layout::Segments segments = access.view.segments({0, access.bytes});
  got = 0;
  while (const auto run = segments.next()) {
    std::int64_t done = 0;
    const int error = transfer(own_.get(), access.writes, access.memory + run->data, run->at, run->length, done);
    if (error != 0) return fail_of_file(error, (access.writes ? "cannot write " : "cannot read ") + path);
    got += done;
    if (done < run->length) break;  // the end of the file
  }
  return HOCKET_OK;
}

// The file system knows the length, except for what servers write behind.
int StoredFile::size(std::int64_t& bytes) {
  struct stat status {};
  if (fstat(own_.get(), &status) != 0) return fail_of_file(errno, "cannot tell the length of " + path);
  bytes = status.st_size;
  return HOCKET_OK;
}

// Only data sets have versions.
int StoredFile::version(std::int64_t&) {
  return fail(HOCKET_ERROR_ARGUMENT, "hocket_version: " + path + " is a file; data sets (hocket:/NAME) have versions");
}

template <class Ask>
int StoredFile::ask_all(Ask ask) {
  leave_out_lost();
  // Shared with callbacks, which may run after this function has thrown.
  const auto errors = std::make_shared<std::vector<int>>(served_.size(), 0);
  for (std::size_t i = 0; i < served_.size(); ++i)
    ask(served_[i], [errors, i](int error, std::int64_t) { (*errors)[i] = error; });
  settle(served_);
  int first = 0;
  for (std::size_t i = 0; i < served_.size(); ++i)
    if (first == 0 && !served_[i].lost()) first = (*errors)[i];
  leave_out_lost();
  return first;
}

int StoredFile::tell_behind(int error) {
  const int kept = std::exchange(behind_error_, 0);
  if (error == 0) error = kept;
  if (error != 0) return fail_of_file(error, "cannot write " + path + " through its I/O servers");
  const std::string lost = std::exchange(behind_lost_, {});
  if (lost.empty()) return HOCKET_OK;
  return fail(HOCKET_ERROR_IO, "the I/O server " + lost +
                                   " was lost, which answers writes before they are in the file: what was put to " +
                                   path + " since the last hocket_flush may be missing; put it again");
}

// Lets the servers store what they hold, then stores what this process wrote itself.
int StoredFile::flush() {
  const int error = ask_all([](Served& one, auto done) { one.link().sync(one.handle, done); });
  if (const int told = tell_behind(error); told != HOCKET_OK) return told;
  const bool writes = (mode & HOCKET_WRITE) != 0;
  // EINVAL: this file cannot be flushed, which is no error of its data.
  if (!writes || fdatasync(own_.get()) == 0 || errno == EINVAL) return HOCKET_OK;
  return fail_of_file(errno, "cannot store " + path);
}

int StoredFile::close() {
  // Servers first: they may still have data of this file.
  const int told = tell_behind(ask_all([](Served& one, auto done) { one.link().close(one.handle, done); }));
  if (told != HOCKET_OK || (mode & HOCKET_WRITE) == 0) return told;
  const int error = error_of_closing(own_.get());
  return error == 0 ? HOCKET_OK : fail_of_file(error, "cannot store " + path);
}

}  // namespace

int open_stored(const Opening& opening, std::unique_ptr<hocket_file>& file) {
  constexpr mode_t for_all = 0666;  // before the umask
  Fd own{::open(opening.path.c_str(), flags_of(opening.mode), for_all)};
  if (!own) return fail_to_open(errno, opening);
  struct stat status {};
  if (fstat(own.get(), &status) != 0) return fail_to_open(errno, opening);
  if (!S_ISREG(status.st_mode)) return fail_to_open(S_ISDIR(status.st_mode) ? EISDIR : ENXIO, opening);
  auto stored = std::make_unique<StoredFile>(opening, std::move(own));
  const int reached = stored->reach(opening);
  if (reached == HOCKET_OK) file = std::move(stored);
  return reached;
}

int fail_of_file(int error, const std::string& what) {
  const auto told = [&](int code, const char* advice) { return fail(code, what + ": " + error_text(error) + advice); };
  switch (error) {
    case ENOENT: return told(HOCKET_ERROR_NOT_FOUND, "; look at the path");
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG: return told(HOCKET_ERROR_ARGUMENT, "; name a file");
    case EACCES:
    case EPERM:
    case EROFS: return told(HOCKET_ERROR_ACCESS, "; have its permissions changed, or name another");
    case ENOSPC:
    case EDQUOT: return told(HOCKET_ERROR_NO_SPACE, "; remove what is not needed, or write elsewhere");
    case ENOMEM: return told(HOCKET_ERROR_MEMORY, "");
    default: return told(HOCKET_ERROR_IO, "; look at the storage");
  }
}

}  // namespace hocket::api
