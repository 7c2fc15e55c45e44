// The open files and the unfinished nonblocking accesses of this process.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "runtime/mpi/process.hpp"

namespace hocket::runtime {

enum class Direction { read, write };

// An access that has begun.
struct Begun {
  RequestId request;               // of its grant; none: not asked for by this rank, or uncoordinated
  bool granted = false;            // by the decision that all ranks of the file have learnt
  bool stoppable = false;          // granted, as all ranks know: also where there is one alone
  Time start{};                    // its data may move from here on
  Duration wait{};                 // for the grant, before that
  int processes = 1;               // of the file; where `request` is given
  bool in_one_call = false;        // its time is that of the access; where `request` or `burst` is given
  Bursts::Burst* burst = nullptr;  // of independent accesses, that it is one of
  bool tracked = false;            // belongs to an I/O phase that this process reports
};

struct File {
  std::string name;
  std::string target;
  MPI_Comm agreement;     // ours, over the file's processes; none where one process needs to agree with nobody
  bool control = false;   // collective accesses are control points
  bool data_set = false;  // shares no storage with others
  bool root = false;      // rank 0 of the file's communicator: the one that asks
  // That of its target, once an independent access has begun; threads at once may look.
  Bursts::Burst* burst = nullptr;
  // In rank 0: how often the others have told it, or will, that a granted operation has ended. A rank's word of one
  // comes after its word of those before, so when none is left out all have ended.
  std::int64_t owed = 0;
  // Of the split collective access under way: MPI allows one a file.
  Begun split;
  Duration split_io{};
};

// What is done around MPI_File_open: collective over the file's communicator.
class Opening {
 public:
  Opening(MPI_Comm comm, const char* name);
  // The file is open, or (`opened` false) is not: nothing is kept then.
  void done(bool opened, MPI_File file, MPI_Info info);

 private:
  File file_;
  bool watched_ = false;
};

// Around MPI_File_close: the record is taken out before, and what it held is given back after. Collective.
std::shared_ptr<File> take_file(MPI_File file);
void file_closed(File* file);

// nullptr: opened before MPI_Init of this world, or nobody is told of it. It is there until the file is closed, which
// MPI allows nobody to do while another thread uses it. The file that this thread has used last is found without a
// lock.
File* find_file(MPI_File file);

// That of the file's target, which is found where nobody has asked for it yet.
Bursts::Burst& burst_of(File& file, Bursts& bursts);

// The hint `hocket_target`, where the info has it, names the file's target from now on.
void take_hints(File& file, MPI_Info info);

// A nonblocking access that has been started.
struct Started {
  Direction direction = Direction::read;
  Begun begun;
  Duration io{};  // in the call that started it
  std::int64_t bytes = 0;
  std::string target;
};

// Whether any access is unfinished: cheap, asked by each MPI_Wait.
bool any_started();
void started(MPI_Request request, Started access);
// Whether the request is of an unfinished access, and of which kind.
std::optional<Direction> direction_of_started(MPI_Request request);
// Takes the access of that request out.
std::optional<Started> take_started(MPI_Request request);

}  // namespace hocket::runtime
