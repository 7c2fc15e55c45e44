#include "runtime/io/collective.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/io/file.hpp"
#include "runtime/mpi/calls.hpp"
#include "runtime/mpi/process.hpp"
#include "runtime/server_map.hpp"

namespace hocket::runtime::io {
namespace {

struct Files {
  std::mutex mutex;
  std::unordered_map<MPI_File, std::shared_ptr<File>> files;
  std::atomic<std::size_t> count = 0;
  std::int64_t told_epoch = 0;  // by map_adopted
};

Files& files() {
  static Files& files = *new Files;
  return files;
}

std::shared_ptr<File> find(MPI_File file) {
  if (files().count == 0) return nullptr;
  const std::lock_guard lock(files().mutex);
  const auto found = files().files.find(file);
  return found == files().files.end() ? nullptr : found->second;
}

// Tells hocketd the oldest epoch that is in use, if it is another.
void tell_epoch() {
  const std::lock_guard lock(files().mutex);
  std::int64_t oldest = 0;
  for (const auto& [handle, file] : files().files)
    if (const std::int64_t epoch = file->epoch(); epoch > 0) oldest = oldest == 0 ? epoch : std::min(oldest, epoch);
  if (oldest == files().told_epoch) return;
  files().told_epoch = oldest;
  map_adopted(oldest);
}

}  // namespace

void file_opened(MPI_Comm comm, const char* name, int mode, MPI_Info info, const MPI_File* file) noexcept {
  if (!Process::get().serves_io() || comm == mpi::no_comm()) return;
  const MPI_Comm ours = mpi::duplicate(comm);
  if (ours == mpi::no_comm()) return;
  auto opened = std::make_shared<File>(ours, name ? name : "", mode);
  std::array<std::int64_t, 1> all = {file && mpi::hint(info, "hocket_collective") != "off" && opened->open_storage()};
  if (!mpi::smallest(ours, all) || all[0] == 0) return;
  opened->take_hints(info);
  const std::lock_guard lock(files().mutex);
  files().files[*file] = std::move(opened);
  files().count = files().files.size();
}

void file_closes(MPI_File file) noexcept {
  if (files().count == 0) return;
  {
    decltype(files().files)::node_type closed;  // ends without the lock: freeing a communicator is collective
    const std::lock_guard lock(files().mutex);
    closed = files().files.extract(file);
    files().count = files().files.size();
  }
  tell_epoch();
}

void hints_set(MPI_File file, MPI_Info info) noexcept {
  if (const std::shared_ptr<File> found = find(file)) found->take_hints(info);
}

void view_set(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char* representation, bool ok) noexcept {
  const std::shared_ptr<File> found = find(file);
  if (!found) return;
  if (ok)
    found->set_view(displacement, etype, filetype, representation);
  else
    found->lose_view();
}

std::optional<int> access(const Access& access, MPI_Status* status) noexcept {
  const std::shared_ptr<File> found = find(access.file);
  if (!found) return std::nullopt;
  const std::int64_t before = found->epoch();
  const std::optional<int> rc = found->access(access, status);
  if (found->epoch() != before) tell_epoch();
  return rc;
}

int sync(MPI_File file) noexcept {
  const std::shared_ptr<File> found = find(file);
  return found ? found->sync(file) : MPI_SUCCESS;
}

}  // namespace hocket::runtime::io
