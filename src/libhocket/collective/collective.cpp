// The service of collective I/O (intercept/services.hpp): keeps the files of this process that hocket serves.
#include "intercept/services.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "api/held_puts.hpp"
#include "collective/beating_wait.hpp"
#include "collective/data_set.hpp"
#include "collective/file.hpp"
#include "mpi_shim/calls.hpp"
#include "process/hot.hpp"
#include "process/identity.hpp"
#include "process/server_map.hpp"

namespace hocket::runtime::collective {
namespace {

// All files of this process that hocket serves. Never destroyed: other libraries' destructors may still call MPI.
struct CollectiveFiles {
  std::mutex storing;  // held by a thread while it makes servers store; taken before `mutex`
  std::mutex mutex;    // guards files, told_epoch, and held_files
  std::unordered_map<MPI_File, std::shared_ptr<CollectiveFile>> files;
  std::atomic<std::size_t> count = 0;      // of files; read without the lock by every access
  std::atomic<std::size_t> data_sets = 0;  // of these files
  std::int64_t told_epoch = 0;             // last one sent by map_adopted
  TuningUse told_use;                      // the same
};

CollectiveFiles& files() {
  static CollectiveFiles& files = *new CollectiveFiles;
  return files;
}

// Precondition: the lock is held.
void count_files() {
  files().count = files().files.size();
  hot.own_files = files().count > 0;
}

// Returns the file of a handle, or nullptr if the MPI library serves it alone.
std::shared_ptr<CollectiveFile> find(MPI_File file) {
  if (files().count == 0) return nullptr;
  const std::lock_guard lock(files().mutex);
  const auto found = files().files.find(file);
  return found == files().files.end() ? nullptr : found->second;
}

// Notes of which files servers may hold data. Precondition: the lock is held.
void note_held_files() {
  std::vector<FileKey> keys;
  for (const auto& [handle, file] : files().files)
    if (file->holds()) keys.push_back(file->key());
  api::held_puts().for_each([&](const struct stat& file) { keys.push_back(key_of(file)); });
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  held_files.replace(keys);
  hot.holds = !keys.empty();
}

// The same, after a call that may have changed it.
void note_held(bool before, bool after) {
  if (before == after) return;
  const std::lock_guard lock(files().mutex);
  note_held_files();
}

// Makes servers store what they hold of the file, or of all files of this process if the key is `no_file`, also of what
// was put. `but` is left out.
void store_held(FileKey key, const CollectiveFile* but = nullptr) {
  const std::lock_guard storing(files().storing);
  std::vector<std::shared_ptr<CollectiveFile>> held;
  {
    const std::lock_guard lock(files().mutex);
    for (const auto& [handle, file] : files().files)
      if (file->holds() && file.get() != but && (key == no_file || file->key() == key)) held.push_back(file);
  }
  for (const auto& file : held) file->store_held();
  BeatingWait how;
  api::held_puts().store([&](const struct stat& file) { return key == no_file || key_of(file) == key; }, how);
  const std::lock_guard lock(files().mutex);
  note_held_files();
}

// Reports to hocketd the oldest map epoch that a file uses, and what an access used of a policy's settings, if one of
// them has changed.
void tell_adopted(const TuningUse& use) {
  const std::lock_guard lock(files().mutex);
  std::int64_t oldest = 0;
  for (const auto& [handle, file] : files().files)
    if (const std::int64_t epoch = file->epoch(); epoch > 0) oldest = oldest == 0 ? epoch : std::min(oldest, epoch);
  if (oldest == files().told_epoch && use == files().told_use) return;
  files().told_epoch = oldest;
  files().told_use = use;
  map_adopted({oldest, use.used, use.hinted});
}

// Closes the stand-in that the MPI library has opened, because the data set is not available. The error handler of
// the handle is called first, as the program may have set one that ends the job.
int close_again(MPI_File* file, int error) {
  HOCKET_PMPI(File_call_errhandler)(*file, error);
  HOCKET_PMPI(File_close)(file);
  return error;
}

OpenedAs to_be_opened(const char* name, int mode) noexcept {
  if (!name || !event::data_set_of(name)) return {name, mode};
  return {backing, (mode & MPI_MODE_WRONLY) != 0 ? MPI_MODE_WRONLY : MPI_MODE_RDONLY};
}

int file_opened(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file, int rc) noexcept {
  const bool is_data_set = name && event::data_set_of(name);
  if ((!is_data_set && identity().settings.io != Io::hocket) || comm == mpi::no_comm()) return rc;
  const MPI_Comm ours = mpi::duplicate(comm);
  if (ours == mpi::no_comm()) return is_data_set && rc == MPI_SUCCESS ? close_again(file, MPI_ERR_OTHER) : rc;
  auto opened = std::make_shared<CollectiveFile>(ours, name ? name : "", mode);
  opened->take_hints(info);
  std::array<std::int64_t, 1> all = {rc == MPI_SUCCESS && (is_data_set || opened->open_storage())};
  // One rank that cannot open the storage leaves the file to the MPI library in all ranks.
  if (!mpi::smallest(ours, all) || all[0] == 0) return is_data_set && rc == MPI_SUCCESS ? MPI_ERR_OTHER : rc;
  if (is_data_set) {
    if (const int failed = opened->join(info); failed != MPI_SUCCESS) return close_again(file, failed);
  }
  const std::lock_guard lock(files().mutex);
  files().data_sets += is_data_set ? 1 : 0;
  files().files[*file] = std::move(opened);
  count_files();
  return rc;
}

int file_closes(MPI_File file) noexcept {
  if (files().count == 0) return MPI_SUCCESS;
  std::shared_ptr<CollectiveFile> closed;  // destroyed without the lock, because freeing a communicator is collective
  {
    const std::lock_guard lock(files().mutex);
    if (auto found = files().files.extract(file)) closed = std::move(found.mapped());
    count_files();
    if (closed && closed->holds()) note_held_files();
    if (closed && closed->is_data_set()) --files().data_sets;
  }
  tell_adopted(files().told_use);
  // Another thread may make servers store for a POSIX access. It must not be the last to use the file.
  if (closed) {
    const std::lock_guard storing(files().storing);
  }
  return closed ? closed->leave(file) : MPI_SUCCESS;
}

void hints_set(MPI_File file, MPI_Info info) noexcept {
  if (const std::shared_ptr<CollectiveFile> found = find(file)) found->take_hints(info);
}

void view_set(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char* representation, bool ok) noexcept {
  const std::shared_ptr<CollectiveFile> found = find(file);
  if (!found) return;
  if (ok)
    found->set_view(displacement, etype, filetype, representation);
  else
    found->lose_view();
}

std::optional<int> access(const AccessCall& access, bool granted, MPI_Status* status) noexcept {
  const std::shared_ptr<CollectiveFile> found = find(access.file);
  if (!found) {
    if (hot.holds) store_held(no_file);
    return std::nullopt;
  }
  const std::int64_t before = found->epoch();
  const TuningUse use = found->tuning_use();
  const bool held = found->holds();
  // Another opening may have written through other servers, and this access may go without servers.
  if (hot.holds && !found->is_data_set()) store_held(found->key(), found.get());
  const std::optional<int> rc = found->access(access, granted, status);
  note_held(held, found->holds());
  if (found->epoch() != before || found->tuning_use() != use) tell_adopted(found->tuning_use());
  return rc;
}

bool is_data_set(MPI_File file) noexcept {
  if (files().data_sets == 0) return false;
  const std::shared_ptr<CollectiveFile> found = find(file);
  return found && found->is_data_set();
}

int access_own(const AccessCall& access, MPI_Status* status) noexcept {
  return find(access.file)->access_own(access, status);
}

int refuse(MPI_File file, bool writes) noexcept {
  if (writes) find(file)->spoil();
  HOCKET_PMPI(File_call_errhandler)(file, MPI_ERR_UNSUPPORTED_OPERATION);
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

std::int64_t size_of_data_set(MPI_File file) noexcept { return find(file)->size(); }
std::int64_t end_of_data_set(MPI_File file) noexcept { return find(file)->end(); }

int sync(MPI_File file) noexcept {
  const std::shared_ptr<CollectiveFile> found = find(file);
  if (!found) return MPI_SUCCESS;
  const bool held = found->holds();
  const int rc = found->sync(file);
  note_held(held, found->holds());
  return rc;
}

bool stores_at_close(MPI_File file) noexcept {
  const std::shared_ptr<CollectiveFile> found = find(file);
  return found && found->stores_at_close();
}

void store(MPI_File file) noexcept {
  const std::shared_ptr<CollectiveFile> found = find(file);
  if (found && found->is_data_set()) return;
  store_held(found ? found->key() : no_file);
}

void store_by_key(FileKey key) noexcept { store_held(key); }

void puts_changed() {
  const std::lock_guard lock(files().mutex);
  note_held_files();
}

}  // namespace
}  // namespace hocket::runtime::collective

const hocket::runtime::FileService hocket::runtime::file_service = {
    .to_be_opened = collective::to_be_opened,
    .opened = collective::file_opened,
    .closes = collective::file_closes,
    .hints_set = collective::hints_set,
    .view_set = collective::view_set,
    .access = collective::access,
    .sync = collective::sync,
    .stores_at_close = collective::stores_at_close,
    .store = collective::store,
    .store_by_key = collective::store_by_key,
    .puts_changed = collective::puts_changed,
    .is_data_set = collective::is_data_set,
    .access_own = collective::access_own,
    .refuse = collective::refuse,
    .size = collective::size_of_data_set,
    .end = collective::end_of_data_set,
};
