// A file: through the I/O servers below whose directory it lies, as long as there are some; else by the process itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "api/file.hpp"
#include "api/served.hpp"
#include "api/server_list.hpp"
#include "api/status.hpp"
#include "base/descriptor.hpp"

namespace hocket::api {
namespace {

std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real{realpath(path.c_str(), nullptr), &std::free};
  return real ? real.get() : path;
}

int flags_of(int mode) {
  const int both = mode & (HOCKET_READ | HOCKET_WRITE);
  const int how = both == HOCKET_READ ? O_RDONLY : both == HOCKET_WRITE ? O_WRONLY : O_RDWR;
  return how | O_CLOEXEC | ((mode & HOCKET_CREATE) != 0 ? O_CREAT : 0);
}

// One run by the process itself: an error of errno; `done`: how many bytes, fewer than all of a read at the end.
int transfer(int file, bool writes, std::byte* memory, std::int64_t offset, std::int64_t bytes, std::int64_t& done) {
  for (done = 0; done < bytes;) {
    const auto left = static_cast<std::size_t>(bytes - done);
    const ssize_t n = writes ? pwrite(file, memory + done, left, offset + done)  //
                             : pread(file, memory + done, left, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return writes ? EIO : 0;
    done += n;
  }
  return 0;
}

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
  int access_by_itself(const Access& access, std::int64_t& got) const;
  void leave_out_lost();
  // Asks each server, and waits; the first error, or that of what a lost one had.
  template <class Ask>
  int ask_all(Ask ask);
  int tell_behind(int error);

  Fd own_;
  int participants_;
  std::vector<Served> served_;
  std::string behind_lost_;  // servers that were lost with what they had answered
};

// Servers of the map that do not answer are left out; those that the caller has named must be there.
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

int StoredFile::ask_to_open(const std::string& at, bool named) {
  const transport::OpenMode how{.reads = (mode & HOCKET_READ) != 0, .writes = (mode & HOCKET_WRITE) != 0};
  std::vector<int> errors(served_.size(), 0);
  for (std::size_t i = 0; i < served_.size(); ++i) {
    Served& one = served_[i];
    one.link().open(at, how, [&one, &error = errors[i]](int its_error, transport::ServerLink::Handle handle) {
      one.handle = handle;
      error = its_error;
    });
  }
  settle(served_);
  int refused = 0;
  std::vector<Served> kept;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    if (!served_[i].lost() && errors[i] == 0) kept.push_back(std::move(served_[i]));
    if (errors[i] != EXDEV) refused = std::max(refused, errors[i]);  // that: not below its directory
  }
  served_ = std::move(kept);
  if (!named || refused == 0) return HOCKET_OK;
  return fail_of_file(refused, "a named server cannot open " + at);
}

void StoredFile::leave_out_lost() {
  std::vector<Served> kept;
  for (Served& one : served_) {
    if (!one.lost()) {
      kept.push_back(std::move(one));
    } else if (one.behind) {
      behind_lost_ += (behind_lost_.empty() ? "" : ", ") + one.server().name;
    }
  }
  served_ = std::move(kept);
}

int StoredFile::access(const Access& access, std::int64_t& got) {
  while (!served_.empty()) {
    if (access.writes)
      for (Served& one : served_) one.behind |= one.link().writes_behind(one.handle);
    const Passed passed = pass(served_, access, participants_);
    leave_out_lost();
    if (passed.lost) continue;  // the bytes are the caller's still: once more, with one server less at least
    got = passed.got;
    return passed.error == 0 ? HOCKET_OK
                             : fail_of_file(passed.error, (access.writes ? "cannot write " : "cannot read ") + path +
                                                              " through its I/O servers");
  }
  return access_by_itself(access, got);
}

int StoredFile::access_by_itself(const Access& access, std::int64_t& got) const {
  layout::Segments segments = access.view.segments({0, access.bytes});
  got = 0;
  while (const auto run = segments.next()) {
    std::int64_t done = 0;
    const int error = transfer(own_.get(), access.writes, access.memory + run->data, run->at, run->length, done);
    if (error != 0) return fail_of_file(error, (access.writes ? "cannot write " : "cannot read ") + path);
    got += done;
    if (done < run->length) break;
  }
  return HOCKET_OK;
}

int StoredFile::size(std::int64_t& bytes) {
  struct stat status {};
  if (fstat(own_.get(), &status) != 0) return fail_of_file(errno, "cannot tell the length of " + path);
  bytes = status.st_size;
  return HOCKET_OK;
}

int StoredFile::version(std::int64_t&) {
  return fail(HOCKET_ERROR_ARGUMENT, "hocket_version: " + path + " is a file; data sets (hocket:/NAME) have versions");
}

template <class Ask>
int StoredFile::ask_all(Ask ask) {
  int first = 0;
  for (Served& one : served_) {
    ask(one, [&first](int error, std::int64_t) {
      if (first == 0) first = error;
    });
  }
  settle(served_);
  for (const Served& one : served_)
    if (one.lost()) first = 0;  // a lost server's error is no error of the storage
  leave_out_lost();
  return first;
}

int StoredFile::tell_behind(int error) {
  if (error != 0) return fail_of_file(error, "cannot write " + path + " through its I/O servers");
  const std::string lost = std::exchange(behind_lost_, {});
  if (lost.empty()) return HOCKET_OK;
  return fail(HOCKET_ERROR_IO, "the I/O server " + lost +
                                   " was lost, which answers writes before they are in the file: what was put to " +
                                   path + " since the last hocket_flush may be missing; put it again");
}

int StoredFile::flush() {
  const int error = ask_all([](Served& one, auto done) { one.link().sync(one.handle, done); });
  for (Served& one : served_) one.behind = false;
  if (const int told = tell_behind(error); told != HOCKET_OK) return told;
  const bool writes = (mode & HOCKET_WRITE) != 0;
  if (!writes || fdatasync(own_.get()) == 0 || errno == EINVAL) return HOCKET_OK;
  return fail_of_file(errno, "cannot store " + path);
}

int StoredFile::close() {
  return tell_behind(ask_all([](Served& one, auto done) { one.link().close(one.handle, done); }));
}

}  // namespace

int open_stored(const Opening& opening, std::unique_ptr<hocket_file>& file) {
  constexpr mode_t for_all = 0666;  // but for the umask
  Fd own{::open(opening.path.c_str(), flags_of(opening.mode), for_all)};
  if (!own) return fail_of_file(errno, "cannot open " + opening.path);
  struct stat status {};
  if (fstat(own.get(), &status) == 0 && S_ISDIR(status.st_mode))
    return fail_of_file(EISDIR, "cannot open " + opening.path);
  auto stored = std::make_unique<StoredFile>(opening, std::move(own));
  const int reached = stored->reach(opening);
  if (reached == HOCKET_OK) file = std::move(stored);
  return reached;
}

int fail_of_file(int error, const std::string& what) {
  const auto told = [&](int code, const char* advice) { return fail(code, what + ": " + error_text(error) + advice); };
  switch (error) {
    case ENOENT: return told(HOCKET_ERROR_NOT_FOUND, "; HOCKET_CREATE beside HOCKET_WRITE makes a file");
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
