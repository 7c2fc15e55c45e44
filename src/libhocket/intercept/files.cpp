#include "intercept/files.hpp"

#include <atomic>
#include <unordered_map>
#include <utility>

#include "event/part_names.hpp"
#include "event/server_map.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/warn.hpp"
#include "process/announced.hpp"
#include "process/identity.hpp"
#include "process/reporter.hpp"
#include "session/file_layout.hpp"
#include "session/target.hpp"

namespace hocket::runtime {
namespace {

constexpr const char* target_hint = "hocket_target";
constexpr const char* targets_hint = "hocket_targets";

// All records. It is never destroyed, because other libraries' destructors may still call MPI.
struct Tables {
  std::mutex mutex;
  std::unordered_map<MPI_File, std::shared_ptr<OpenFile>> files;
  // Several accesses may have one request: Open MPI returns the same one for all that have ended immediately.
  std::unordered_multimap<MPI_Request, Started> started;
  std::atomic<std::size_t> started_count = 0;
};

// Counts opened and closed files. It invalidates the threads' caches.
constinit std::atomic<std::uint64_t> changes = 1;

// This thread's cache of the file that it has found last, valid while `changes` is the same.
struct FileCache {
  std::uint64_t changes = 0;
  MPI_File handle{};
  OpenFile* file = nullptr;
};
constinit thread_local FileCache found_last;

Tables& tables() {
  static Tables& tables = *new Tables;
  return tables;
}

// Returns rank 0's layout in all ranks, or nothing if MPI fails. Collective. A file system that tells no layout costs
// one message of four bytes.
std::optional<PartNames> tell_layout(MPI_Comm comm, const std::optional<PartNames>& layout) {
  std::string text = layout ? event::text_of_parts(*layout) : std::string{};
  auto length = static_cast<std::uint32_t>(text.size());
  if (!mpi::broadcast(comm, 0, &length, sizeof length) || length == 0) return std::nullopt;
  text.resize(length);
  if (!mpi::broadcast(comm, 0, text.data(), length)) return std::nullopt;
  const auto names = event::part_names_of(text);
  return names ? std::optional(names.value()) : std::nullopt;
}

// Returns true if the operator holds the target of a file that is about to be opened by an application that was told
// not to coordinate. Collective: rank 0 knows.
bool agree_on_held(MPI_Comm comm, const OpenFile& file, int size, MPI_Info info) {
  bool held = false;
  if (file.root) {
    const HeldTargets& targets = held_targets();
    held = targets.has(target_of(file.name)) || targets.has(target_called(mpi::hint(info, target_hint)));
  }
  return size > 1 ? mpi::agree(comm, held ? 1 : 0) != 0 : held;
}

// Determines the file's target if it is not known yet. The tables are locked.
void know_target(OpenFile& file) {
  if (file.target.empty()) file.target = target_of(file.name);
}

}  // namespace

Opening::Opening(MPI_Comm comm, const char* name, MPI_Info info) {
  file_.agreement = mpi::no_comm();
  if (!hot.is_reported() || comm == mpi::no_comm()) return;
  watched_ = true;
  file_.name = name ? name : "";
  file_.root = mpi::rank_in(comm) == 0;
  file_.data_set = event::data_set_of(file_.name).has_value();
  if (file_.data_set) return;
  const int size = mpi::size_of(comm);
  if (!identity().coordinates() && !agree_on_held(comm, file_, size, info)) return;
  // If one process of several has opened the file alone, its collective accesses are no control points. They are
  // coordinated as independent accesses.
  file_.control = size > 1 || (identity().size == 1 && !identity().spawned);
  if (size > 1) {
    file_.agreement = mpi::duplicate(comm);
    file_.control = file_.agreement != mpi::no_comm();
  }
}

void Opening::done(bool opened, MPI_File file, MPI_Info info) {
  if (!watched_) return;
  if (identity().coordinates() && !file_.data_set) learn_layout(opened);
  if (!opened) return mpi::free(file_.agreement);
  if (file_.root || Reporter::find()) file_.target = file_.data_set ? file_.name : target_of(file_.name);
  take_hints(file_, info);
  const std::lock_guard lock(tables().mutex);
  tables().files[file] = std::make_shared<OpenFile>(std::move(file_));
  ++changes;
}

// One rank asks and tells the others, because a thousand that ask would load the metadata server. A rank whose opening
// failed takes part too, because the others cannot know.
void Opening::learn_layout(bool opened) {
  if (file_.root && opened) file_.layout = layout_of(file_.name);
  if (file_.agreement != mpi::no_comm()) file_.layout = tell_layout(file_.agreement, file_.layout);
  file_.parts = choose_parts(std::nullopt, file_.layout);
}

std::shared_ptr<OpenFile> take_file(MPI_File file) {
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().files.extract(file);
  ++changes;
  return found ? found.mapped() : nullptr;
}

void file_closed(OpenFile* file) {
  if (!file) return;
  // Messages of accesses that failed in rank 0 may be outstanding, and the communicator must not be freed before.
  mpi::receive_words(file->agreement, file->owed);
  mpi::free(file->agreement);
  if (file->accessed) announced().file_done();
  bool last = false;
  {
    const std::lock_guard lock(tables().mutex);
    last = tables().files.empty();
  }
  if (!last) return;
  if (Reporter* const reporter = Reporter::find()) reporter->files_closed();
}

OpenFile* find_file(MPI_File file) {
  if (!hot.is_reported()) return nullptr;
  if (found_last.changes == changes.load(std::memory_order_acquire) && found_last.handle == file)
    return found_last.file;
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().files.find(file);
  found_last = {changes, file, found == tables().files.end() ? nullptr : found->second.get()};
  return found_last.file;
}

Bursts::Burst& burst_of(OpenFile& file, Bursts& bursts) {
  const std::atomic_ref known(file.burst);
  if (Bursts::Burst* burst = known.load(std::memory_order_acquire)) return *burst;
  const std::lock_guard lock(tables().mutex);
  know_target(file);
  Bursts::Burst& burst = bursts.of(file.target, file.parts, file.file_system);
  known.store(&burst, std::memory_order_release);
  return burst;
}

bool is_file_held(OpenFile& file, const HeldTargets& held) {
  const std::lock_guard lock(tables().mutex);
  know_target(file);
  return held.has(file.target) || (!file.file_system.empty() && held.has(file.file_system));
}

void take_hints(OpenFile& file, MPI_Info info) {
  std::string target = target_called(mpi::hint(info, target_hint));
  const auto targets = mpi::find_hint(info, targets_hint);
  if (target.empty() && !targets) return;
  std::string line;
  {
    const std::lock_guard lock(tables().mutex);
    if (!target.empty()) {
      if (!file.data_set) file.file_system = target_of(file.name);
      file.target = std::move(target);
      file.layout.reset();  // the file system's parts are not those of another target
    }
    const FileParts before = std::exchange(file.parts, choose_parts(targets, file.layout));
    std::atomic_ref(file.burst).store(nullptr, std::memory_order_release);
    if (file.root && !file.parts.error.empty() && file.parts != before)
      line = ignored_line(file.parts, targets_hint, file.name, file.target);
  }
  if (!line.empty()) warn(line);
}

bool any_started() { return tables().started_count.load(std::memory_order_relaxed) > 0; }

void started(MPI_Request request, Started access) {
  const std::lock_guard lock(tables().mutex);
  tables().started.emplace(request, std::move(access));
  ++tables().started_count;
}

std::optional<Started> take_started(MPI_Request request) {
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().started.find(request);
  if (found == tables().started.end()) return std::nullopt;
  Started access = std::move(found->second);
  tables().started.erase(found);
  --tables().started_count;
  return access;
}

std::optional<AccessDirection> direction_of_started(MPI_Request request) {
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().started.find(request);
  return found == tables().started.end() ? std::nullopt : std::optional(found->second.direction);
}

}  // namespace hocket::runtime
