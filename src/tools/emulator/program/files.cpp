// Stages that do I/O. A file is open only during a stage, because its communicator may change at the next control
// point.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/extents.hpp"
#include "emulator/program/stage_run.hpp"
#include "emulator/program/timed_calls.hpp"
#include "emulator/shares.hpp"

namespace hocket::emulator {
namespace {

class FileStage : public StageRun {
 public:
  FileStage(const Stage& stage, std::size_t number, Shop& shop)
      : stage_(stage),
        ranks_(shop.ranks),
        path_(shop.directory + "/" + stage.file),
        parts_(parts_of(stage.bytes, shares_of(stage, shop.ranks.size, shop.plan.seed, number))),
        rounds_(rounds_of(parts_, stage.request_bytes)),
        shop_(shop),
        calls_(stage, shop, stage.access == Access::collective),
        done_(shop.iteration == 0 ? 0 : accesses_in_file()) {
    const std::int64_t most = request_of(parts_, stage.request_bytes, stage.strided, ranks_.rank, 0).bytes;
    if (most > INT32_MAX)
      fail("stage '" + stage.name + "': a request has " + std::to_string(most) +
           " bytes: give request_bytes, at most 1g");
    shop.scratch.grow(most, 0);
  }

  void run(std::int64_t /*iteration*/, std::int64_t before) override {
    if (calls_.are_timed()) calls_.begin();
    open();
    if (calls_.are_timed())
      repeat();
    else
      access_all(before);
    close();
    if (calls_.are_timed()) calls_.end();
  }

 protected:
  virtual void open() = 0;
  virtual void access(RankRequest request) = 0;
  virtual void close() = 0;
  virtual std::int64_t start_of_appended(std::int64_t before) { return before * stage_.bytes; }
  bool writes() const { return stage_.kind == Kind::write; }
  char* memory() { return shop_.scratch.sent.data(); }
  [[noreturn]] void failed(const std::string& why) const {
    fail("cannot " + std::string(writes() ? "write " : "read ") + path_ + ": " + why);
  }
  const Stage& stage_;
  const Ranks ranks_;
  std::string path_;

 private:
  // Repeats the access until the time is over.
  void repeat() {
    const bool takes_part = parts_[static_cast<std::size_t>(ranks_.rank)] > 0 || stage_.access == Access::collective;
    if (!takes_part) return;
    while (const std::int64_t count = calls_.next())
      for (std::int64_t time = 0; time < count; time++) access_all(done_++);
  }

  // Makes this rank's requests of an access. `before`: accesses before it, behind which it appends.
  void access_all(std::int64_t before) {
    const std::int64_t base = stage_.append ? start_of_appended(before) : 0;
    for (std::int64_t round = 0; round < rounds_; round++) {
      RankRequest request = request_of(parts_, stage_.request_bytes, stage_.strided, ranks_.rank, round);
      request.offset += base - (stage_.access == Access::file_per_process ? start_of_mine() : 0);
      access(request);
    }
  }

  // Returns how many accesses a shared file holds; 1 for a rank's own file, whose end is looked up. The number of timed
  // accesses follows from no plan. All ranks find the same one, because they wait for each other before the next stage.
  std::int64_t accesses_in_file() const {
    struct stat status {};
    if (stage_.access == Access::file_per_process) return 1;
    return ::stat(path_.c_str(), &status) == 0 ? (status.st_size + stage_.bytes - 1) / stage_.bytes : 0;
  }

  std::int64_t start_of_mine() const { return request_of(parts_, 0, false, ranks_.rank, 0).offset; }
  std::vector<std::int64_t> parts_;  // bytes of each rank
  std::int64_t rounds_;
  Shop& shop_;
  TimedCalls calls_;
  std::int64_t done_;  // accesses, of a stage that ends by time
};

class MpiFile final : public FileStage {
 public:
  using FileStage::FileStage;

 private:
  void check(int code) const {
    char why[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, why, &length);
    std::replace(why, why + length, '\n', ' ');  // messages are one line
    failed(std::string(why, static_cast<std::size_t>(length)));
  }
  void open() override {
    const int mode = writes() ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    check(MPI_File_open(ranks_.comm, path_.c_str(), mode, MPI_INFO_NULL, &file_));
  }
  void access(RankRequest request) override {
    const int bytes = static_cast<int>(request.bytes);
    const bool collective = stage_.access == Access::collective;
    if (!collective && bytes == 0) return;
    MPI_Status status;
    if (writes())
      check((collective ? MPI_File_write_at_all : MPI_File_write_at)(file_, request.offset, memory(), bytes, MPI_BYTE,
                                                                     &status));
    else
      check((collective ? MPI_File_read_at_all : MPI_File_read_at)(file_, request.offset, memory(), bytes, MPI_BYTE,
                                                                   &status));
  }
  void close() override {
    if (stage_.sync) check(MPI_File_sync(file_));
    check(MPI_File_close(&file_));
  }
  MPI_File file_ = MPI_FILE_NULL;
};

class PosixFile final : public FileStage {
 public:
  PosixFile(const Stage& stage, std::size_t number, Shop& shop) : FileStage(stage, number, shop) {
    if (stage.access == Access::file_per_process) path_ += "." + std::to_string(ranks_.rank);
  }

 private:
  void open() override {
    file_ = ::open(path_.c_str(), writes() ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0644);
    if (file_ < 0) failed(std::strerror(errno));
  }
  // A rank's own file has what this rank has written, as many ranks as there were.
  std::int64_t start_of_appended(std::int64_t before) override {
    struct stat status {};
    if (stage_.access != Access::file_per_process) return FileStage::start_of_appended(before);
    if (before == 0 && ftruncate(file_, 0) != 0) failed(std::strerror(errno));
    return fstat(file_, &status) == 0 ? status.st_size : 0;
  }
  void access(RankRequest request) override {
    for (std::int64_t done = 0; done < request.bytes;) {
      const auto left = static_cast<std::size_t>(request.bytes - done);
      const ssize_t now = writes() ? pwrite(file_, memory() + done, left, request.offset + done)
                                   : pread(file_, memory() + done, left, request.offset + done);
      if (now < 0 && errno == EINTR) continue;
      if (now < 0) failed(std::strerror(errno));
      if (now == 0) failed("it ended early");
      done += now;
    }
  }
  void close() override {
    const int failure = (stage_.sync && fsync(file_) != 0) ? errno : 0;
    if (::close(file_) != 0 || failure) failed(std::strerror(failure ? failure : errno));
  }
  int file_ = -1;
};

}  // namespace

std::unique_ptr<StageRun> make_access(const Stage& stage, std::size_t number, Shop& shop) {
  const bool posix = stage.access == Access::posix || stage.access == Access::file_per_process;
  if (posix) return std::make_unique<PosixFile>(stage, number, shop);
  return std::make_unique<MpiFile>(stage, number, shop);
}

namespace {

// Makes a file as long as it must be. A hole would be read without the disk, so it is written.
void fill(const std::string& path, std::int64_t bytes) {
  const std::vector<char> zeros(1 << 20, 0);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) fail("cannot make " + path + ": " + std::strerror(errno));
  for (std::int64_t at = status.st_size; at < bytes;) {
    const auto left = static_cast<std::size_t>(std::min<std::int64_t>(bytes - at, std::int64_t{1} << 20));
    const ssize_t now = pwrite(file, zeros.data(), left, at);
    if (now <= 0) fail("cannot make " + path + ": " + std::strerror(errno));
    at += now;
  }
  ::close(file);
}

}  // namespace

void make_file_to_read(const Stage& stage, std::size_t number, const Shop& shop) {
  const std::string path = shop.directory + "/" + stage.file;
  const auto rank = static_cast<std::size_t>(shop.ranks.rank);
  if (stage.access == Access::file_per_process)
    fill(path + "." + std::to_string(rank),
         parts_of(stage.bytes, shares_of(stage, shop.ranks.size, shop.plan.seed, number))[rank]);
  else if (rank == 0)
    fill(path, stage.bytes);
}

}  // namespace hocket::emulator
