#include "mpi_shim/calls.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <memory>
#include <numeric>
#include <vector>

#include "base/clock.hpp"
#include "base/saturating.hpp"

namespace hocket::runtime::mpi {
namespace {

// The last message of this process with its spent time. MPI may read the numbers until the send has completed.
struct SpentMessage {
  std::atomic_flag used;                  // set while a thread sends
  std::array<std::int64_t, 2> numbers{};  // ns: computing, communication
  MPI_Request request = no_request();

  // Returns true if the send has completed.
  bool has_gone() {
    int done = 0;
    return HOCKET_PMPI(Test)(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  }
};

SpentMessage& word() {
  static SpentMessage last;
  return last;
}

}  // namespace

void Patience::pause() {
  if (yields_left_ > 0) {
    --yields_left_;
    sched_yield();
    return;
  }
  const timespec time{0, sleep_ns_};
  nanosleep(&time, nullptr);
  sleep_ns_ = std::min(2 * sleep_ns_, longest_sleep_ns_);
  yields_left_ = yields_between_;
}

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  HOCKET_PMPI(Error_string)(code, text.data(), &length);
  return text.data();
}

bool wait_asleep(MPI_Request request, Patience patience, Time until) {
  int done = 0;
  while (HOCKET_PMPI(Test)(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
    if (done) return true;
    if (until != Time::max() && node_now() > until) return false;
    patience.pause();
  }
  return false;
}

bool receive_from_any(MPI_Comm comm, int tag, std::span<std::byte> memory, MPI_Request& request) {
  request = no_request();
  int found = 0;
  MPI_Status status{};
  if (HOCKET_PMPI(Iprobe)(MPI_ANY_SOURCE, tag, comm, &found, &status) != MPI_SUCCESS) return false;
  return !found || HOCKET_PMPI(Irecv)(memory.data(), static_cast<int>(memory.size()), byte_type(), status.MPI_SOURCE,
                                      tag, comm, &request) == MPI_SUCCESS;
}

bool await_from_any(MPI_Comm comm, int tag, std::span<std::byte> memory, Patience patience) {
  MPI_Request request = no_request();
  while (receive_from_any(comm, tag, memory, request)) {
    if (request != no_request()) return wait_asleep(request);
    patience.pause();
  }
  return false;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  HOCKET_PMPI(Comm_rank)(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  HOCKET_PMPI(Comm_size)(comm, &size);
  return size;
}

std::vector<int> ranks_in_world(MPI_Comm comm) {
  std::vector<int> own(static_cast<std::size_t>(size_of(comm)));
  std::iota(own.begin(), own.end(), 0);
  if (comm == world()) return own;
  MPI_Group group{};
  MPI_Group all{};
  if (HOCKET_PMPI(Comm_group)(comm, &group) != MPI_SUCCESS) return {};
  std::vector<int> ranks(own.size(), MPI_UNDEFINED);
  if (HOCKET_PMPI(Comm_group)(world(), &all) == MPI_SUCCESS) {
    HOCKET_PMPI(Group_translate_ranks)(group, static_cast<int>(own.size()), own.data(), all, ranks.data());
    HOCKET_PMPI(Group_free)(&all);
  }
  HOCKET_PMPI(Group_free)(&group);
  if (std::find(ranks.begin(), ranks.end(), MPI_UNDEFINED) != ranks.end()) return {};
  return ranks;
}

bool has_threads() {
  int level = MPI_THREAD_MULTIPLE;
  HOCKET_PMPI(Query_thread)(&level);
  return level == MPI_THREAD_MULTIPLE;
}

bool is_spawned() {
  MPI_Comm parent = no_comm();
  HOCKET_PMPI(Comm_get_parent)(&parent);
  return parent != no_comm();
}

bool is_inter(MPI_Comm comm) {
  int inter = 0;
  return HOCKET_PMPI(Comm_test_inter)(comm, &inter) != MPI_SUCCESS || inter != 0;
}

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm ours = no_comm();
  if (HOCKET_PMPI(Comm_dup)(comm, &ours) != MPI_SUCCESS) return no_comm();
  HOCKET_PMPI(Comm_set_errhandler)(ours, errors_return());
  return ours;
}

void free(MPI_Comm& comm) {
  if (comm != no_comm()) HOCKET_PMPI(Comm_free)(&comm);
  comm = no_comm();
}

int agree(MPI_Comm comm, int value) {
  unsigned char decided = static_cast<unsigned char>(value);
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Ibcast)(&decided, 1, byte_type(), 0, comm, &request) == MPI_SUCCESS) wait_asleep(request);
  return decided;
}

// This uses messages instead of MPI_Ireduce, because in a reduction's tree a rank that has resumed computing would
// delay the messages of others.
void tell_root(MPI_Comm comm) { tell(comm, 0, 0); }

void tell_root(MPI_Comm comm, const Spent& spent) {
  SpentMessage& last = word();
  if (last.used.test_and_set(std::memory_order_acquire)) return tell_root(comm);
  if (last.has_gone()) {
    last.numbers = {spent.cpu.count(), spent.comm.count()};
    if (HOCKET_PMPI(Isend)(last.numbers.data(), sizeof(last.numbers), byte_type(), 0, 0, comm, &last.request) !=
        MPI_SUCCESS)
      last.request = no_request();
  } else {
    tell_root(comm);
  }
  last.used.clear(std::memory_order_release);
}

void forget_told() {
  SpentMessage& last = word();
  if (!last.has_gone() && last.request != no_request()) HOCKET_PMPI(Request_free)(&last.request);
}

void tell(MPI_Comm comm, int rank, int tag) {
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Isend)(nullptr, 0, byte_type(), rank, tag, comm, &request) == MPI_SUCCESS)
    HOCKET_PMPI(Request_free)(&request);  // without a buffer, its completion does not matter
}

void await_word(MPI_Comm comm, int rank, int tag) {
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Irecv)(nullptr, 0, byte_type(), rank, tag, comm, &request) == MPI_SUCCESS) wait_asleep(request);
}

void send_copy(MPI_Comm comm, int rank, int tag, std::span<const std::byte> bytes) {
  struct Copy {
    std::array<std::byte, 64> bytes{};
    MPI_Request request = no_request();
  };
  static std::list<Copy>& copies = *new std::list<Copy>;  // whose sends may not have completed
  copies.remove_if([](Copy& copy) {
    int done = 0;
    return HOCKET_PMPI(Test)(&copy.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
  Copy& copy = copies.emplace_back();
  std::copy(bytes.begin(), bytes.end(), copy.bytes.begin());
  if (HOCKET_PMPI(Isend)(copy.bytes.data(), static_cast<int>(bytes.size()), byte_type(), rank, tag, comm,
                         &copy.request) != MPI_SUCCESS)
    copies.pop_back();
}

bool receive_within(MPI_Comm comm, int rank, int tag, std::span<std::byte> memory, Time until) {
  for (Patience patience;; patience.pause()) {
    int found = 0;
    if (HOCKET_PMPI(Iprobe)(rank, tag, comm, &found, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (found) break;
    if (node_now() > until) return false;
  }
  return HOCKET_PMPI(Recv)(memory.data(), static_cast<int>(memory.size()), byte_type(), rank, tag, comm,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

SpentTotals receive_words(MPI_Comm comm, std::int64_t& owed) {
  SpentTotals all;
  for (; owed > 0; --owed) {
    std::array<std::int64_t, 2> numbers = {-1, -1};
    if (!await_from_any(comm, 0, std::as_writable_bytes(std::span(numbers)))) break;
    if (numbers[0] >= 0) all.add({Duration{numbers[0]}, Duration{numbers[1]}});
  }
  return all;
}

void push(MPI_Comm comm) {
  int found = 0;
  HOCKET_PMPI(Iprobe)(MPI_ANY_SOURCE, 0, comm, &found, MPI_STATUS_IGNORE);
}

void meet(MPI_Comm comm) {
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Ibarrier)(comm, &request) == MPI_SUCCESS) wait_asleep(request);
}

bool broadcast(MPI_Comm comm, int root, void* data, std::int64_t bytes) {
  MPI_Request request = no_request();
  return HOCKET_PMPI(Ibcast)(data, static_cast<int>(bytes), byte_type(), root, comm, &request) == MPI_SUCCESS &&
         wait_asleep(request);
}

namespace {

bool reduce_all(MPI_Comm comm, std::span<std::int64_t> values, MPI_Op op) {
  const std::vector<std::int64_t> own(values.begin(), values.end());
  MPI_Request request = no_request();
  return HOCKET_PMPI(Iallreduce)(own.data(), values.data(), static_cast<int>(values.size()), int64_type(), op, comm,
                                 &request) == MPI_SUCCESS &&
         wait_asleep(request);
}

}  // namespace

bool largest(MPI_Comm comm, std::span<std::int64_t> values) { return reduce_all(comm, values, max_op()); }
bool smallest(MPI_Comm comm, std::span<std::int64_t> values) { return reduce_all(comm, values, min_op()); }

bool total_within(MPI_Comm comm, std::span<std::int64_t> values, Duration limit) {
  struct Numbers {
    std::vector<std::int64_t> own, all;
  };
  auto numbers =
      std::make_unique<Numbers>(Numbers{{values.begin(), values.end()}, std::vector<std::int64_t>(values.size())});
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Iallreduce)(numbers->own.data(), numbers->all.data(), static_cast<int>(values.size()), int64_type(),
                              sum_op(), comm, &request) != MPI_SUCCESS)
    return false;
  if (!wait_asleep(request, {}, saturating_sum(node_now(), limit))) {
    (void)numbers.release();  // MPI may use the memory as long as the process lives
    return false;
  }
  std::copy(numbers->all.begin(), numbers->all.end(), values.begin());
  return true;
}

bool gather_all(MPI_Comm comm, std::span<const std::int64_t> own, std::int64_t* all) {
  const int count = static_cast<int>(own.size());
  MPI_Request request = no_request();
  return HOCKET_PMPI(Iallgather)(own.data(), count, int64_type(), all, count, int64_type(), comm, &request) ==
             MPI_SUCCESS &&
         wait_asleep(request, Patience::for_data());
}

namespace {

template <class Number>
void reduce(MPI_Comm comm, std::span<Number> values, MPI_Datatype type, MPI_Op op) {
  std::array<Number, 16> own{};
  std::copy(values.begin(), values.end(), own.begin());
  MPI_Request request = no_request();
  if (HOCKET_PMPI(Ireduce)(own.data(), values.data(), static_cast<int>(values.size()), type, op, 0, comm, &request) ==
      MPI_SUCCESS)
    wait_asleep(request);
}

}  // namespace

void sum(MPI_Comm comm, std::span<std::int64_t> values) { reduce(comm, values, int64_type(), sum_op()); }
void sum(MPI_Comm comm, std::span<double> values) { reduce(comm, values, double_type(), sum_op()); }
void most(MPI_Comm comm, std::span<std::int64_t> values) { reduce(comm, values, int64_type(), max_op()); }

std::int64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || HOCKET_PMPI(Type_size_x)(type, &size) != MPI_SUCCESS) return 0;
  return static_cast<std::int64_t>(count * size);
}

std::optional<std::string> find_hint(MPI_Info info, const char* key) {
  if (info == no_info()) return std::nullopt;
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int found = 0;
  if (HOCKET_PMPI(Info_get)(info, key, MPI_MAX_INFO_VAL, value.data(), &found) != MPI_SUCCESS || !found)
    return std::nullopt;
  return value.data();
}

std::string hint(MPI_Info info, const char* key) { return find_hint(info, key).value_or(std::string{}); }

std::vector<std::pair<std::string, std::string>> pairs(MPI_Info info) {
  std::vector<std::pair<std::string, std::string>> found;
  int count = 0;
  if (info == no_info() || HOCKET_PMPI(Info_get_nkeys)(info, &count) != MPI_SUCCESS) return found;
  for (int i = 0; i < count; ++i) {
    std::array<char, MPI_MAX_INFO_KEY + 1> key{};
    if (HOCKET_PMPI(Info_get_nthkey)(info, i, key.data()) == MPI_SUCCESS)
      found.emplace_back(key.data(), hint(info, key.data()));
  }
  return found;
}

std::int64_t number_hint(MPI_Info info, const char* key, std::int64_t otherwise, std::int64_t least,
                         std::int64_t most) {
  const std::string text = hint(info, key);
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' || number < least ? otherwise : std::min<std::int64_t>(number, most);
}

}  // namespace hocket::runtime::mpi
