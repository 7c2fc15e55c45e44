// The bodies of the generated wrappers: the work of libhocket around each MPI call. `call` is the next such function.
//
// A routine that is called from inside another one (by the MPI's own I/O layer, by a Fortran layer, by a tool) is
// passed on and not counted. The return value is the call's own, unless hocket does the file's I/O itself.
//
// I/O time is the time in data-access routines and in MPI_File_open, _close and the like. Of nonblocking and split
// accesses, it is the time in the call that starts them and in those that wait for or test them, not what lies between.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/held_puts.hpp"
#include "base/clock.hpp"
#include "base/kept_descriptor.hpp"
#include "intercept/files.hpp"
#include "intercept/posix.h"
#include "intercept/services.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/next.hpp"
#include "mpi_shim/our_mpi.hpp"
#include "process/call_log.hpp"
#include "process/grants.hpp"
#include "process/lifecycle.hpp"
#include "process/reporter.hpp"

#define HOCKET_EXPORT __attribute__((visibility("default")))
#define HOCKET_INLINE __attribute__((always_inline))

namespace hocket::runtime {

// False if the program has another MPI than this libhocket. A process that is watched has this one: then the wrapper
// reads only the cache line that it needs anyway, which matters after a large copy. It is always inlined, because the
// compiler would make a function of it, on a page of code that nothing else uses.
HOCKET_INLINE inline bool may_watch() { return hot.is_active() || is_our_mpi(); }

class Depth : public Inside {
 public:
  // True if the program itself made the call, in a process that libhocket watches.
  bool watched() const { return outermost() && hot.is_active(); }
};

// The caller's status, or one of its own if the caller ignores the status: the moved bytes are read from it.
class FilledStatus {
 public:
  explicit FilledStatus(MPI_Status* callers) : status_(callers == MPI_STATUS_IGNORE ? &own_ : callers) {}
  MPI_Status* get() { return status_; }

 private:
  MPI_Status own_{};
  MPI_Status* status_;
};

inline CallCounters& activity(AccessDirection direction) {
  return direction == AccessDirection::read ? hot.counters.read : hot.counters.write;
}

// Counts a call as communication, and reports an I/O phase that is over by now.
inline void communicated(Time start, Time end, std::int64_t bytes) {
  hot.count(hot.counters.comm, bytes, end - start);
  report_phase_due(end);
}

// ---- parts of the hooks that do not depend on the call -------------------------------------------------------------

// The routine of an access and the size that this process passes to it: `count` elements of a type. `count` is 0 if the
// routine has no such arguments. `offset` is in the file's view, as the program passes it.
struct CalledRoutine {
  const char* routine;
  MPI_Count count = 0;
  MPI_Datatype type{};
  std::optional<MPI_Offset> offset{};

  std::int64_t bytes() const { return count > 0 ? mpi::bytes_of(count, type) : 0; }
};

// Begins an independent access as part of an I/O phase, and of a burst (session/bursts.hpp), which may block for a
// grant. `in_one_call` is false if the access runs beside the program (nonblocking).
BegunAccess begin_access(OpenFile* file, const CalledRoutine& asked, Time start, bool in_one_call) noexcept;
// Begins an access as part of the given burst, or without coordination if `bursts` and `burst` are nullptr. `describe`
// fills in START_IO.
BegunAccess begin_independent(Bursts* bursts, Bursts::Burst* burst, Bursts::Describe describe, Time start,
                              bool in_one_call) noexcept;
// Begins a collective access as part of an I/O phase, with a control point if the file has them. `agree`: all ranks of
// the file learn the decision before it returns. `use` is `started` if the access runs beside the program.
BegunAccess begin_collective(OpenFile* file, const CalledRoutine& asked, Time start, bool agree,
                             RequestPurpose use = RequestPurpose::operation) noexcept;

// The control point after a blocking collective access, whose call has returned in this rank, `ok` or with an error.
// The grant ends when all ranks have returned, so rank 0 waits for them; the others continue at once. If the call
// failed in rank 0, it does not wait, because the others may never return. The others send rank 0 the time that they
// had spent when the call began, at `since`.
void await_end(const BegunAccess& begun, OpenFile* file, bool ok, Time since) noexcept;

// Ends an access: counts it, and sends FINISH_IO if it was granted. `status` is nullptr if the call failed.
void end_access(AccessDirection direction, const BegunAccess& begun, const OpenFile* file, Time end,
                const MPI_Status* status) noexcept;
// Gives up the grant of an access that has ended, and records the access in its I/O phase. `io` is its time in all,
// without the time `paused` in its middle.
void leave_access(AccessDirection direction, const BegunAccess& begun, std::string_view target, Time end, Duration io,
                  Duration paused, std::int64_t bytes) noexcept;

// Handle the return of the two halves of a split collective access. The second half began at `start`.
void split_began(AccessDirection direction, const BegunAccess& begun, OpenFile* file, Time end, bool ok) noexcept;
void split_ended(AccessDirection direction, OpenFile* file, Time start, Time end, const MPI_Status* status) noexcept;

// Handles the return of a call that starts a nonblocking access. `request` is nullptr if the call failed.
void access_started(AccessDirection direction, const BegunAccess& begun, const OpenFile* file, Time end,
                    std::int64_t bytes, const MPI_Request* request) noexcept;

// Remembers which requests of an array are I/O, before a call that may complete them and so overwrite the handles.
class Completion {
 public:
  Completion(int count, const MPI_Request* requests);
  // Ends the accesses that the call has completed. Returns false if none of the requests was I/O.
  bool done(const MPI_Request* requests, Time start, Time end) noexcept;

 private:
  struct Watched {
    int index;
    MPI_Request request;
    AccessDirection direction;
  };
  std::vector<Watched> watched_;
};

// ---- one function for each kind of routine (mpi_routines.txt) ------------------------------------------------------

template <class Call>
int watch_init(Call call) {
  const Depth depth;
  if (depth.outermost()) {
    make_room_out_of_reach();
    init_service.begins();
  }
  const int rc = call();
  if (depth.outermost()) init_service.has_ended();
  if (rc == MPI_SUCCESS && !hot.is_active()) {
    initialised();
    posix_watch_begins(file_service.store_by_key);
    api::held_puts().changed = file_service.puts_changed;
  }
  return rc;
}

template <class Call>
int watch_finalize(Call call) {
  const Depth depth;
  if (depth.watched()) {
    finalising();
    posix_watch_ends();
  }
  return call();
}

// Stops watching: an aborted process leaves without BYE, whatever MPI still calls on its way out.
template <class Call>
int watch_abort(Call call) {
  const Depth depth;
  if (depth.watched()) hot.active = hot.watches_posix = false;
  return call();
}

// Returns what the log has of a communication: the bytes that this process contributes, its peer or -1, and the
// communicator's size.
LoggedCall logged_communication(std::int64_t bytes, int peer, MPI_Comm comm) noexcept;
// Stands for a routine that is not logged.
struct SkipLog {};
inline constexpr SkipLog skip_log;

// Returns the bytes of all counts, one for each process of the communicator; 0 if that connects two groups.
template <class Count>
std::int64_t bytes_of_all(const Count* counts, MPI_Datatype type, MPI_Comm comm) {
  if (mpi::is_inter(comm)) return 0;
  MPI_Count sum = 0;
  for (int rank = 0; rank < mpi::size_of(comm); ++rank) sum += counts[rank];
  return mpi::bytes_of(sum, type);
}

// Returns the bytes of this process's count, in the same way.
template <class Count>
std::int64_t bytes_of_own(const Count* counts, MPI_Datatype type, MPI_Comm comm) {
  return mpi::is_inter(comm) ? 0 : mpi::bytes_of(counts[mpi::rank_in(comm)], type);
}

// Counts communication. `payload` is the routine's count and datatype, if it has one of each and they are significant
// in every rank; then its bytes are counted too. `describe` returns what the log of calls has of the call.
template <class Call, class Describe, class... Payload>
int watch_communication(const char* routine, Call call, Describe describe, Payload... payload) {
  const Depth depth;
  if (!depth.watched()) return call();
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  const int rc = call();
  if constexpr (!std::is_same_v<Describe, SkipLog>) {
    if (call_log::is_on()) call_log::add(routine, began, describe());
  }
  const Time end = node_now();
  std::int64_t bytes = 0;
  if constexpr (sizeof...(payload) > 0) {
    if (rc == MPI_SUCCESS) bytes = mpi::bytes_of(payload...);
  }
  communicated(start, end, bytes);
  return rc;
}

// Logs a call that waits for what others have begun. Calls that only look are left out: a program may look at any rate.
void log_completion(const char* routine, const call_log::CallStart& began) noexcept;

// Logs an access of `bytes`, or a routine of a file that is no access. `handle` is the file of a call that succeeded;
// without one, the log has no offset.
void log_access(const CalledRoutine& called, CallKind kind, const call_log::CallStart& began, const OpenFile* file,
                std::int64_t bytes, std::optional<MPI_File> handle = {}) noexcept;

inline std::optional<MPI_File> succeeded(int rc, MPI_File file) {
  return rc == MPI_SUCCESS ? std::optional<MPI_File>(file) : std::nullopt;
}

inline CallKind kind_of(AccessDirection direction) {
  return direction == AccessDirection::read ? CallKind::read : CallKind::write;
}

// Counts a call that may complete requests: as I/O if one of them is an access, else as communication.
template <class Call>
int watch_completion(const char* routine, Call call, int count, const MPI_Request* requests) {
  const Depth depth;
  if (!depth.watched()) return call();
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  if (!any_started()) {
    const int rc = call();
    log_completion(routine, began);
    communicated(start, node_now(), 0);
    return rc;
  }
  Completion completion(count, requests);
  const int rc = call();
  log_completion(routine, began);
  const Time end = node_now();
  if (!completion.done(requests, start, end)) communicated(start, end, 0);
  return rc;
}

// True for an access of the program itself that needs nothing but counting: the application is not reported to hocketd,
// and hocket does the accesses of no file. False in a process that is not watched.
HOCKET_INLINE inline bool only_counts() { return !Inside::any() && hot.only_counts(); }

// Counts a blocking access. It does nothing else.
template <class Call>
HOCKET_INLINE inline int count_access(AccessDirection direction, Call call, MPI_Status* status) {
  FilledStatus filled(status);
  const Time start = node_now();
  const int rc = call(filled.get());
  const Duration io = node_now() - start;
  hot.count(activity(direction), rc == MPI_SUCCESS ? mpi::bytes_in(*filled.get()) : 0, io);
  return rc;
}

// The common path of a data access: precondition is `only_counts()`. After a large copy, cold cache lines of code make
// up the cost of a wrapper, so this path has nothing in it that belongs to the others.
template <class Call>
HOCKET_INLINE inline int count_only(AccessDirection direction, Call call, MPI_Status* status) {
  const Inside inside;
  return count_access(direction, call, status);
}

// Passes on a blocking access that may be reported to hocketd, or wait for a grant.
template <class Call>
[[gnu::noinline]] int pass_access(AccessDirection direction, bool collective, const CalledRoutine& asked, Call call,
                                  MPI_File file, MPI_Status* status) {
  OpenFile* const record = find_file(file);
  FilledStatus filled(status);
  const call_log::CallStart began = call_log::moment();
  const BegunAccess begun =
      collective ? begin_collective(record, asked, node_now(), true) : begin_access(record, asked, node_now(), true);
  int rc = MPI_SUCCESS;
  if constexpr (std::is_invocable_v<Call, MPI_Status*, bool>)
    rc = call(filled.get(), begun.stoppable);
  else
    rc = call(filled.get());
  await_end(begun, record, rc == MPI_SUCCESS, begun.start);
  const MPI_Status* const moved = rc == MPI_SUCCESS ? filled.get() : nullptr;
  log_access(asked, kind_of(direction), began, record, moved ? mpi::bytes_in(*moved) : 0, succeeded(rc, file));
  end_access(direction, begun, record, node_now(), moved);
  return rc;
}

template <class Call>
int watch_independent(AccessDirection direction, const CalledRoutine& asked, Call call, MPI_File file,
                      MPI_Status* status) {
  const Depth depth;
  if (!depth.watched()) return call(status);
  if (!hot.is_reported()) return count_access(direction, call, status);
  return pass_access(direction, false, asked, call, file, status);
}

template <class Call>
int watch_collective(AccessDirection direction, const CalledRoutine& asked, Call call, MPI_File file,
                     MPI_Status* status) {
  const Depth depth;
  if (!depth.watched()) return call(status);
  if (!hot.is_reported()) return count_access(direction, call, status);
  return pass_access(direction, true, asked, call, file, status);
}

inline bool is_data_set(MPI_File file) {
  return hot.own_files.load(std::memory_order_relaxed) && file_service.is_data_set(file);
}

// Lets the MPI library use the file, which then has what I/O servers hold of it.
template <class Call>
int by_library(MPI_File file, Call call) {
  if (hot.holds.load(std::memory_order_relaxed)) file_service.store(file);
  return call();
}

// Passes on a routine that is an error for data sets.
template <class Call>
int unless_data_set(MPI_File file, bool writes, Call call) {
  return is_data_set(file) ? file_service.refuse(file, writes) : by_library(file, call);
}

// Passes on an independent access, or does it itself if the file is a data set.
template <class Call>
int watch_own(const char* routine, Call call, const AccessCall& access, MPI_Status* status) {
  const auto own = [&](MPI_Status* filled) {
    if (is_data_set(access.file)) return file_service.access_own(access, filled);
    return by_library(access.file, [&] { return call(filled); });
  };
  return watch_independent(access.direction, {routine, access.count, access.type, access.offset}, own, access.file,
                           status);
}

template <class Call>
int watch_size(Call call, MPI_File file, MPI_Offset* size) {
  const Depth depth;
  if (!depth.watched()) return call();
  if (!is_data_set(file)) return by_library(file, call);
  *size = file_service.size(file);
  return MPI_SUCCESS;
}

// Translates MPI_SEEK_END for data sets, because the MPI library has /dev/null open in their place, which has no end.
template <class Call>
int watch_seek(Call call, MPI_File file, MPI_Offset offset, int whence) {
  const Depth depth;
  if (!depth.watched() || whence != MPI_SEEK_END) return call(offset, whence);
  if (!is_data_set(file)) return by_library(file, [&] { return call(offset, whence); });
  return call(file_service.end(file) + offset, MPI_SEEK_SET);
}

// Passes on a collective access, or does it itself if hocket serves the file.
template <class Call>
int watch_served(const char* routine, Call call, const AccessCall& access, MPI_Status* status) {
  const Depth depth;
  if (!depth.watched()) return call(status);
  const auto serve = [&](MPI_Status* filled, bool granted = false) {
    if (!hot.own_files.load(std::memory_order_relaxed)) return by_library(access.file, [&] { return call(filled); });
    const std::optional<int> rc = file_service.access(access, granted, filled);
    if (!rc) return call(filled);
    grants::done_by_hocket();
    return *rc;
  };
  if (!hot.is_reported()) return count_access(access.direction, serve, status);
  return pass_access(access.direction, true, {routine, access.count, access.type, access.offset}, serve, access.file,
                     status);
}

// Counts MPI_File_sync as a collective write of 0 bytes. It has no status, and the bytes that it moves are counted
// already, so the status stays empty.
template <class Call>
int watch_sync(const char* routine, Call call, MPI_File file) {
  const Depth depth;
  if (!depth.watched()) return call();
  const auto both = [&](MPI_Status*) {
    const int ours = file_service.sync(file);
    if (is_data_set(file)) return ours;
    const int rc = call();
    return rc == MPI_SUCCESS ? ours : rc;
  };
  MPI_Status* const none = MPI_STATUS_IGNORE;
  if (!hot.is_reported()) return count_access(AccessDirection::write, both, none);
  return pass_access(AccessDirection::write, true, {routine}, both, file, none);
}

// Passes on the first half of a split collective access; `watch_end` passes on the second.
template <class Call>
int watch_begin(AccessDirection direction, const CalledRoutine& asked, Call call, MPI_File file) {
  const Depth depth;
  if (!depth.watched()) return call();
  OpenFile* const record = find_file(file);
  const call_log::CallStart began = call_log::moment();
  const BegunAccess begun = begin_collective(record, asked, node_now(), true, RequestPurpose::started);
  const int rc = call();
  log_access(asked, kind_of(direction), began, record, asked.bytes(), succeeded(rc, file));
  if (rc != MPI_SUCCESS) await_end(begun, record, false, begun.start);
  split_began(direction, begun, record, node_now(), rc == MPI_SUCCESS);
  return rc;
}

template <class Call>
int watch_end(const char* routine, AccessDirection direction, Call call, MPI_File file, MPI_Status* status) {
  const Depth depth;
  if (!depth.watched()) return call(status);
  OpenFile* const record = find_file(file);
  FilledStatus filled(status);
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  const int rc = call(filled.get());
  log_completion(routine, began);
  if (record) await_end(record->split, record, rc == MPI_SUCCESS, start);
  split_ended(direction, record, start, node_now(), rc == MPI_SUCCESS ? filled.get() : nullptr);
  return rc;
}

template <class Call>
int pass_start(AccessDirection direction, const CalledRoutine& asked, Call call, const BegunAccess& begun,
               const OpenFile* file, MPI_File handle, const MPI_Request* request) {
  const call_log::CallStart began = call_log::moment();
  const int rc = call();
  const Time end = node_now();
  log_access(asked, kind_of(direction), began, file, asked.bytes(), succeeded(rc, handle));
  const bool ok = rc == MPI_SUCCESS;
  access_started(direction, begun, file, end, ok ? asked.bytes() : 0, ok ? request : nullptr);
  return rc;
}

template <class Call>
int watch_start(AccessDirection direction, const CalledRoutine& asked, Call call, MPI_File file,
                const MPI_Request* request) {
  const Depth depth;
  if (!depth.watched()) return call();
  OpenFile* const record = find_file(file);
  const BegunAccess begun = begin_access(record, asked, node_now(), false);
  return pass_start(direction, asked, call, begun, record, file, request);
}

// Passes on the start of a nonblocking collective access. MPI forbids a rank to wait for another one here, so only rank
// 0 waits for the grant.
template <class Call>
int watch_collective_start(AccessDirection direction, const CalledRoutine& asked, Call call, MPI_File file,
                           const MPI_Request* request) {
  const Depth depth;
  if (!depth.watched()) return call();
  OpenFile* const record = find_file(file);
  const BegunAccess begun = begin_collective(record, asked, node_now(), false, RequestPurpose::started);
  return pass_start(direction, asked, call, begun, record, file, request);
}

// Counts a file routine that is no data access as I/O time.
template <class Call>
int watch_file(const char* routine, Call call) {
  const Depth depth;
  if (!depth.watched()) return call();
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  const int rc = call();
  const Time end = node_now();
  log_access({routine}, CallKind::file, began, nullptr, 0);
  file_touched(end, end - start);
  return rc;
}

template <class Call>
int watch_open(Call call, MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
  const Depth depth;
  if (!depth.watched()) return call(name, mode);
  Opening opening(comm, name, info);
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  // The MPI library opens another file in place of a data set.
  const auto [other_name, other_mode] = file_service.to_be_opened(name, mode);
  const int rc = file_service.opened(comm, name, mode, info, file, call(other_name, other_mode));
  const Time end = node_now();
  log_access({"MPI_File_open"}, CallKind::file, began, nullptr, 0);
  file_touched(end, end - start);
  opening.done(rc == MPI_SUCCESS, *file, info);
  return rc;
}

// Has I/O servers store what was written, when it is the application's turn, so that the close has to wait for nothing.
// Counts as a collective write of 0 bytes, as MPI_File_sync.
inline void store_in_turn(MPI_File file) {
  if (!file_service.stores_at_close(file)) return;
  const auto store = [&](MPI_Status*) {
    if (hot.holds.load(std::memory_order_relaxed)) file_service.store(file);
    return MPI_SUCCESS;
  };
  pass_access(AccessDirection::write, true, {"MPI_File_close"}, store, file, MPI_STATUS_IGNORE);
}

template <class Call>
int watch_close(Call call, const MPI_File* file) {
  const Depth depth;
  if (!depth.watched()) return call();
  if (hot.own_files.load(std::memory_order_relaxed) && hot.is_reported()) store_in_turn(*file);
  const std::shared_ptr<OpenFile> record = take_file(*file);
  const Time start = node_now();
  const call_log::CallStart began = call_log::moment();
  const int lost = file_service.closes(*file);
  int rc = call();
  if (rc == MPI_SUCCESS) rc = lost;
  const Time end = node_now();
  log_access({"MPI_File_close"}, CallKind::file, began, record.get(), 0);
  file_touched(end, end - start);
  file_closed(record.get());
  return rc;
}

template <class Call>
int watch_hint(const char* routine, Call call, MPI_File file, MPI_Info info) {
  return watch_file(routine, [&] {
    const int rc = call();
    OpenFile* const record = find_file(file);
    if (record && rc == MPI_SUCCESS) take_hints(*record, info);
    if (rc == MPI_SUCCESS) file_service.hints_set(file, info);
    return rc;
  });
}

template <class Call>
int watch_view(const char* routine, Call call, MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
               MPI_Datatype filetype, const char* representation, MPI_Info info) {
  return watch_hint(
      routine,
      [&] {
        const int rc = call();
        file_service.view_set(file, displacement, etype, filetype, representation, rc == MPI_SUCCESS);
        return rc;
      },
      file, info);
}

}  // namespace hocket::runtime
