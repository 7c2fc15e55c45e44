#include "malleable/redistribution.hpp"

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

#include "malleable/exchange.hpp"
#include "malleable/packing.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/signals_blocked.hpp"

namespace hocket::runtime {
namespace {

// Makes the implementation of a method.
std::unique_ptr<ArrayExchange> make_exchange(Method method) {
  switch (method) {
    case Method::collective: return collective_exchange();
    case Method::p2p: return p2p_exchange();
    case Method::rma_lock: return rma_exchange(false);
    case Method::rma_lock_all: return rma_exchange(true);
  }
  return nullptr;
}

// Returns the copies of what stays in its process.
LocalCopies copies_of_kept(std::span<const ArrayTransfer> arrays) {
  LocalCopies copies;
  for (const ArrayTransfer& array : arrays) {
    for (const redistribute::KeptElements& k : array.plan.kept)
      copies.add(array.to + k.to * array.element_bytes, array.from + k.from * array.element_bytes,
                 k.count * array.element_bytes);
  }
  return copies;
}

// The steps that all methods and strategies share. `comm` is in use until finish() has returned. After an error every
// step does nothing.
class Steps {
 public:
  Steps(MPI_Comm comm, std::vector<ArrayTransfer> arrays, Method method, bool wait_for_all)
      : comm_(comm),
        arrays_(std::move(arrays)),
        keeping_(copies_of_kept(arrays_)),
        packing_(arrays_),
        exchange_(make_exchange(method)),
        wait_for_all_(wait_for_all) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  void post() {
    if (!packing_.pack()) return check(MPI_ERR_NO_MEM);
    check(exchange_->post(comm_, packing_.arrays()));
  }

  // True if the transfer is over or has failed.
  bool test() {
    if (failed()) return true;
    return own_ended() && (!wait_for_all_ || all_ended());
  }

  // Blocks until this rank's own messages and copies have ended.
  void wait() {
    mpi::Patience patience = mpi::Patience::for_data();
    while (!failed() && !own_ended()) {
      // A pass that copies does useful work, so there is no pause.
      if (!copying_) patience.pause();
    }
  }

  // Blocks until the memory may be freed: with one-sided methods, or if the strategy says so, until all ranks have
  // ended.
  void finish() {
    wait();
    mpi::Patience patience = mpi::Patience::for_data();
    while (!failed() && (wait_for_all_ || exchange_->is_read_by_others()) && !all_ended()) patience.pause();
    if (!failed()) check(exchange_->close());
  }

  Status status() const {
    if (!failed()) return success();
    return Error{"redistribution failed: " + mpi::error_text(code_)};
  }
  bool failed() const { return code_ != MPI_SUCCESS; }

 private:
  // Keeps the first error code.
  void check(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

  // Tests the messages, and copies the next chunk of the data that stay; of those that have arrived, once all have.
  // True if everything has ended.
  bool own_ended() {
    if (!sent_) check(exchange_->test(sent_));
    copying_ = keeping_.copy_some() || (sent_ && packing_.unpack_some());
    return sent_ && !copying_;
  }

  // True if all ranks have ended, by a nonblocking barrier that each rank enters once its own part has ended.
  bool all_ended() {
    if (barrier_ == BarrierState::before) {
      check(HOCKET_PMPI(Ibarrier)(comm_, &request_));
      barrier_ = BarrierState::begun;
    }
    int ended = barrier_ == BarrierState::ended;
    if (!ended && !failed()) check(HOCKET_PMPI(Test)(&request_, &ended, MPI_STATUS_IGNORE));
    if (ended) barrier_ = BarrierState::ended;
    return ended;
  }

  MPI_Comm comm_;
  std::vector<ArrayTransfer> arrays_;
  LocalCopies keeping_;
  Packing packing_;
  std::unique_ptr<ArrayExchange> exchange_;
  bool wait_for_all_;
  bool sent_ = false;
  bool copying_ = false;  // the last pass has copied
  enum class BarrierState { before, begun, ended } barrier_ = BarrierState::before;
  MPI_Request request_ = mpi::no_request();
  int code_ = MPI_SUCCESS;
};

// A transfer that makes progress only in the caller's test() and finish().
class InCaller final : public Redistribution {
 public:
  InCaller(MPI_Comm comm, std::vector<ArrayTransfer> arrays, Method method, Strategy strategy)
      : comm_(strategy == Strategy::blocking ? mpi::no_comm() : comm),
        steps_(comm, std::move(arrays), method, strategy == Strategy::wait_targets) {
    steps_.post();
    if (strategy == Strategy::blocking) steps_.wait();
  }

  Status status() const { return steps_.status(); }
  bool test() override { return steps_.test(); }
  Status finish() override {
    steps_.finish();
    mpi::free(comm_);
    return steps_.status();
  }

 private:
  MPI_Comm comm_;  // the duplicate to free; none with Strategy::blocking
  Steps steps_;
};

// A transfer in a thread of its own; without one to be had, it makes progress in test() and finish().
class InThread final : public Redistribution {
 public:
  InThread(MPI_Comm comm, std::vector<ArrayTransfer> arrays, Method method)
      : comm_(comm), steps_(comm, std::move(arrays), method, false) {
    try {
      const SignalsBlocked blocked;
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      steps_.post();
    }
  }
  InThread(const InThread&) = delete;
  InThread& operator=(const InThread&) = delete;
  ~InThread() override {
    if (thread_.joinable()) thread_.join();
  }

  bool test() override { return thread_.joinable() ? ended_.load(std::memory_order_acquire) : steps_.test(); }
  Status finish() override {
    if (thread_.joinable())
      thread_.join();
    else
      steps_.finish();
    mpi::free(comm_);
    return steps_.status();
  }

 private:
  void run() {
    const Inside inside;
    steps_.post();
    steps_.finish();
    ended_.store(true, std::memory_order_release);
  }

  MPI_Comm comm_;  // the duplicate to free
  Steps steps_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  // last member, because it uses all others
};

}  // namespace

int ArrayExchange::test(bool& ended) {
  int all = 1;
  const int code =
      HOCKET_PMPI(Testall)(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
  ended = all;
  return code;
}

Result<std::unique_ptr<Redistribution>> Redistribution::start(MPI_Comm all, std::vector<ArrayTransfer> arrays,
                                                              Method method, Strategy strategy) {
  MPI_Comm comm = all;
  // The barriers of a transfer in progress must not meet the caller's collective calls, and two threads must not use
  // one communicator.
  if (strategy != Strategy::blocking) {
    comm = mpi::duplicate(all);
    if (comm == mpi::no_comm()) return Error{"redistribution failed: the MPI could not duplicate the communicator"};
  }
  if (strategy != Strategy::thread) {
    auto begun = std::make_unique<InCaller>(comm, std::move(arrays), method, strategy);
    if (Status status = begun->status(); !status) return status.error();
    return std::unique_ptr<Redistribution>{std::move(begun)};
  }
  return std::unique_ptr<Redistribution>{std::make_unique<InThread>(comm, std::move(arrays), method)};
}

}  // namespace hocket::runtime
