// Keeps the records of this process's open files and unfinished nonblocking accesses, by MPI handle.
//
// The functions are thread-safe, and may be called while hot.is_active() is true. Collective ones say so.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "intercept/services.hpp"
#include "session/bursts.hpp"
#include "session/file_parts.hpp"

namespace hocket::runtime {

// The state of an access between its begin and its end.
struct BegunAccess {
  RequestId request;               // none: this rank has not asked, or the access is uncoordinated
  bool granted = false;            // all ranks of a file with several ranks have received this decision
  bool stoppable = false;          // granted, and all ranks of the file, one or several, know it
  Time start{};                    // its data may move from here on
  Duration wait{};                 // time waited for the grant before `start`
  int processes = 1;               // number of ranks of the file; valid with `request`
  bool in_one_call = false;        // one call contains the whole access; valid with `request` or `burst`
  Bursts::Burst* burst = nullptr;  // the burst of an independent access
  bool tracked = false;            // belongs to an I/O phase that this process reports
};

// The record of an open file.
struct OpenFile {
  std::string name;
  std::string target;
  std::string file_system{};          // its target, if `target` is a name that the application gave instead
  FileParts parts{};                  // of the target
  std::optional<PartNames> layout{};  // where the file lies, if the file system tells
  MPI_Comm agreement;                 // duplicate of the file's communicator, owned; none if no ranks have to agree
  bool control = false;               // collective accesses are control points
  bool data_set = false;              // is exchanged by name, and shares no storage with others
  bool root = false;                  // this is rank 0 of the file's communicator, which sends the requests
  // The bursts of its target, once an independent access has begun. Threads access it concurrently (atomic_ref).
  Bursts::Burst* burst = nullptr;
  // In rank 0, the number of end messages of the other ranks that it has not received. A rank's messages arrive in
  // order, so at 0 all granted operations have ended in all ranks.
  std::int64_t owed = 0;
  bool accessed = false;  // set by any thread (atomic_ref)
  // The split collective access under way. MPI allows one per file.
  BegunAccess split;
  Duration split_io{};
};

// Creates the record around MPI_File_open. Collective over the file's communicator.
class Opening {
 public:
  Opening(MPI_Comm comm, const char* name, MPI_Info info);
  // Stores the record under the handle. If `opened` is false, it discards the record.
  void done(bool opened, MPI_File file, MPI_Info info);

 private:
  void learn_layout(bool opened);

  OpenFile file_;
  bool watched_ = false;
};

// Removes the record before MPI_File_close.
std::shared_ptr<OpenFile> take_file(MPI_File file);
// Releases what the record holds after MPI_File_close. Collective. If it was the last file, the I/O phase ends.
void file_closed(OpenFile* file);

// Returns the record, or nullptr if the file was opened before MPI_Init of this world or is not watched. The record
// lives until the file is closed, and MPI forbids closing a file while another thread uses it. The file that this
// thread used last is found without a lock.
OpenFile* find_file(MPI_File file);

// Returns the bursts of the file's target and parts, and determines that target if it is not known yet.
Bursts::Burst& burst_of(OpenFile& file, Bursts& bursts);

// True if the operator holds the file's target. Determines that target if it is not known yet.
bool is_file_held(OpenFile& file, const HeldTargets& held);

// Sets the file's target to the hint `hocket_target` and its parts to the hint `hocket_targets`, if the info has them.
// Rank 0 writes one line about parts that cannot be meant.
void take_hints(OpenFile& file, MPI_Info info);

// A nonblocking access that has been started.
struct Started {
  AccessDirection direction = AccessDirection::read;
  BegunAccess begun;
  Duration io{};  // time in the call that started it
  std::int64_t bytes = 0;
  std::string target;
};

// Returns true if any access is unfinished. Cheap, because each MPI_Wait asks.
bool any_started();
void started(MPI_Request request, Started access);
// Returns the direction of the request's access, or nothing if the request is no unfinished access.
std::optional<AccessDirection> direction_of_started(MPI_Request request);
// Removes the access of that request and returns it.
std::optional<Started> take_started(MPI_Request request);

}  // namespace hocket::runtime
