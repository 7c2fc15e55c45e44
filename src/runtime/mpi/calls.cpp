#include "runtime/mpi/calls.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "runtime/mpi/next.hpp"

// The next PMPI_ function, with the type that mpi.h gives it.
#define HOCKET_NEXT(function)                                                 \
  ([]() -> decltype(&(function)) {                                            \
    static constinit Next<std::remove_pointer_t<decltype(&(function))>> next{ \
        #function}; /* NOLINT(bugprone-macro-parentheses) */                  \
    return next();                                                            \
  }())

namespace hocket::runtime::mpi {
namespace {

// Open MPI's constants are addresses of variables in libmpi; where libmpi is linked by nobody when we are loaded, only
// looking them up by name finds them.
#ifdef OPEN_MPI
#define HOCKET_CONSTANT(type, variable, constant) static_cast<type>(find_variable(#variable))
#else
#define HOCKET_CONSTANT(type, variable, constant) constant
#endif

MPI_Datatype byte_type() {
  static const auto type = HOCKET_CONSTANT(MPI_Datatype, ompi_mpi_byte, MPI_BYTE);
  return type;
}

MPI_Info no_info() {
  static const auto info = HOCKET_CONSTANT(MPI_Info, ompi_mpi_info_null, MPI_INFO_NULL);
  return info;
}

// Yields at first, then sleeps for up to a millisecond at a time. False: the MPI says that it failed.
bool wait_asleep(MPI_Request request) {
  constexpr int polite_tries = 50;
  constexpr long longest_ns = 1'000'000;
  long sleep_ns = 20'000;
  int done = 0;
  for (int tries = 0;; ++tries) {
    if (HOCKET_NEXT(PMPI_Test)(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done) return true;
    if (tries < polite_tries) {
      sched_yield();
      continue;
    }
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);
    sleep_ns = std::min(2 * sleep_ns, longest_ns);
  }
}

}  // namespace

MPI_Comm world() {
  static const auto comm = HOCKET_CONSTANT(MPI_Comm, ompi_mpi_comm_world, MPI_COMM_WORLD);
  return comm;
}

MPI_Comm no_comm() {
  static const auto comm = HOCKET_CONSTANT(MPI_Comm, ompi_mpi_comm_null, MPI_COMM_NULL);
  return comm;
}

MPI_Request no_request() {
  static const auto request = HOCKET_CONSTANT(MPI_Request, ompi_request_null, MPI_REQUEST_NULL);
  return request;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  HOCKET_NEXT(PMPI_Comm_rank)(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  HOCKET_NEXT(PMPI_Comm_size)(comm, &size);
  return size;
}

bool has_threads() {
  int level = MPI_THREAD_MULTIPLE;
  HOCKET_NEXT(PMPI_Query_thread)(&level);
  return level == MPI_THREAD_MULTIPLE;
}

bool is_spawned() {
  MPI_Comm parent = no_comm();
  HOCKET_NEXT(PMPI_Comm_get_parent)(&parent);
  return parent != no_comm();
}

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm ours = no_comm();
  if (HOCKET_NEXT(PMPI_Comm_dup)(comm, &ours) != MPI_SUCCESS) return no_comm();
  static const auto errors_return = HOCKET_CONSTANT(MPI_Errhandler, ompi_mpi_errors_return, MPI_ERRORS_RETURN);
  HOCKET_NEXT(PMPI_Comm_set_errhandler)(ours, errors_return);
  return ours;
}

void free(MPI_Comm& comm) {
  if (comm != no_comm()) HOCKET_NEXT(PMPI_Comm_free)(&comm);
  comm = no_comm();
}

int agree(MPI_Comm comm, int value) {
  unsigned char decided = static_cast<unsigned char>(value);
  MPI_Request request = no_request();
  if (HOCKET_NEXT(PMPI_Ibcast)(&decided, 1, byte_type(), 0, comm, &request) == MPI_SUCCESS) wait_asleep(request);
  return decided;
}

// Messages, not MPI_Ireduce: in its tree a rank that has gone on to compute would keep back the word of others.
void tell_root(MPI_Comm comm) {
  MPI_Request request = no_request();
  if (HOCKET_NEXT(PMPI_Isend)(nullptr, 0, byte_type(), 0, 0, comm, &request) == MPI_SUCCESS)
    HOCKET_NEXT(PMPI_Request_free)(&request);  // it has no buffer, so nobody need see its end
}

void receive_words(MPI_Comm comm, std::int64_t& owed) {
  for (; owed > 0; --owed) {
    MPI_Request request = no_request();
    if (HOCKET_NEXT(PMPI_Irecv)(nullptr, 0, byte_type(), MPI_ANY_SOURCE, 0, comm, &request) != MPI_SUCCESS) return;
    if (!wait_asleep(request)) return;
  }
}

void sum(MPI_Comm comm, std::span<std::int64_t> values) {
  static const auto integer = HOCKET_CONSTANT(MPI_Datatype, ompi_mpi_int64_t, MPI_INT64_T);
  static const auto add = HOCKET_CONSTANT(MPI_Op, ompi_mpi_op_sum, MPI_SUM);
  std::array<std::int64_t, 16> own{};
  std::copy(values.begin(), values.end(), own.begin());
  MPI_Request request = no_request();
  if (HOCKET_NEXT(PMPI_Ireduce)(own.data(), values.data(), static_cast<int>(values.size()), integer, add, 0, comm,
                                &request) == MPI_SUCCESS)
    wait_asleep(request);
}

std::int64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || HOCKET_NEXT(PMPI_Type_size_x)(type, &size) != MPI_SUCCESS) return 0;
  return static_cast<std::int64_t>(count * size);
}

std::string hint(MPI_Info info, const char* key) {
  if (info == no_info()) return {};
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int found = 0;
  if (HOCKET_NEXT(PMPI_Info_get)(info, key, MPI_MAX_INFO_VAL, value.data(), &found) != MPI_SUCCESS || !found) return {};
  return value.data();
}

}  // namespace hocket::runtime::mpi
