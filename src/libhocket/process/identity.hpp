// The identity of this process: its settings and its place in the application. It is constant after MPI_Init.
//
// Thread-safe. The functions may throw std::bad_alloc.
#pragma once

#include <string>

#include "event/event.hpp"
#include "session/settings.hpp"

namespace hocket::runtime {

struct Identity {
  std::string wrong_settings;  // complaints, one a line, which are printed when the rank is known
  MemberSettings settings;
  int rank = 0;  // in MPI_COMM_WORLD
  int size = 1;  // of MPI_COMM_WORLD
  bool spawned = false;
  Time started{};  // when MPI_Init returned

  // True in the process that prints the application's warnings.
  bool speaks() const { return rank == 0 && !spawned; }
  bool coordinates() const { return settings.coordinates(); }
};

// Returns the one object. The first use creates it and reads the settings. It is never destroyed, because other
// libraries' destructors may still call MPI.
const Identity& identity();
// Fills in what MPI knows. Called once, by the thread in which MPI_Init returns, before any other thread calls MPI.
const Identity& identify();

// Returns the HELLO of this process.
event::Hello hello();
// Returns for whom I/O servers ask for turns before they store what this process writes (event/applicant.hpp): the
// target is that of the requests of this process. "": accesses are not coordinated.
std::string applicant_at(const event::StartIo& asked);
// Returns a text that identifies the application among all present and past ones: its name, job and program. If
// `hocket run` gave no job, the text identifies this process alone.
std::string application_id();

}  // namespace hocket::runtime
