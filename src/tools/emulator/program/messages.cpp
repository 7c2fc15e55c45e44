// Stages that communicate.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <numeric>

#include "emulator/extents.hpp"
#include "emulator/program/stage_run.hpp"
#include "emulator/program/timed_calls.hpp"
#include "emulator/shares.hpp"

namespace hocket::emulator {
namespace {

constexpr int tag = 1;

// Returns what each rank sends: `bytes` if the shares are equal.
std::vector<int> sent_by_each(const Stage& stage, std::size_t number, const Shop& shop) {
  const std::vector<std::int64_t> parts =
      parts_of(stage.bytes * shop.ranks.size, shares_of(stage, shop.ranks.size, shop.plan.seed, number));
  return {parts.begin(), parts.end()};
}

// Returns where parts lie that follow one another.
std::vector<int> places_of(const std::vector<int>& parts) {
  std::vector<int> places(parts.size(), 0);
  std::exclusive_scan(parts.begin(), parts.end(), places.begin(), 0);
  return places;
}

// A message that is sent once, or until its time is over.
class MessageStage : public StageRun {
 public:
  MessageStage(const Stage& stage, Shop& shop) : ranks_(shop.ranks), shop_(shop), calls_(stage, shop, true) {}

  void run(std::int64_t /*iteration*/, std::int64_t /*before*/) override {
    if (!calls_.are_timed()) {
      call();
      return;
    }
    calls_.begin();
    while (const std::int64_t count = calls_.next())
      for (std::int64_t time = 0; time < count; time++) call();
  }

 protected:
  virtual void call() = 0;
  char* sent() { return shop_.scratch.sent.data(); }
  char* received() { return shop_.scratch.received.data(); }
  void grow(std::int64_t sent_bytes, std::int64_t received_bytes) { shop_.scratch.grow(sent_bytes, received_bytes); }
  const Ranks ranks_;

 private:
  Shop& shop_;
  TimedCalls calls_;
};

// Sends to the next rank of a ring, and receives from the one before.
class Ring : public MessageStage {
 public:
  Ring(const Stage& stage, std::size_t number, Shop& shop) : MessageStage(stage, shop) {
    const std::vector<int> parts = sent_by_each(stage, number, shop);
    next_ = (ranks_.rank + 1) % ranks_.size;
    before_ = (ranks_.rank + ranks_.size - 1) % ranks_.size;
    sent_bytes_ = parts[static_cast<std::size_t>(ranks_.rank)];
    received_bytes_ = parts[static_cast<std::size_t>(before_)];
    grow(sent_bytes_, received_bytes_);
  }

 protected:
  void call() override {
    MPI_Sendrecv(sent(), sent_bytes_, MPI_BYTE, next_, tag, received(), received_bytes_, MPI_BYTE, before_, tag,
                 ranks_.comm, MPI_STATUS_IGNORE);
  }
  int next_, before_, sent_bytes_, received_bytes_;
};

// The same without waiting. Its memory is its own, because other stages run before its wait.
class NonBlockingRing final : public Ring {
 public:
  NonBlockingRing(const Stage& stage, std::size_t number, Shop& shop)
      : Ring(stage, number, shop),
        sent_(static_cast<std::size_t>(sent_bytes_)),
        received_(static_cast<std::size_t>(received_bytes_)) {}
  void wait() { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  void call() override {
    MPI_Irecv(received_.data(), received_bytes_, MPI_BYTE, before_, tag + 1, ranks_.comm, requests_.data());
    MPI_Isend(sent_.data(), sent_bytes_, MPI_BYTE, next_, tag + 1, ranks_.comm, &requests_[1]);
  }
  std::vector<char> sent_, received_;
  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

class WaitStage final : public StageRun {
 public:
  explicit WaitStage(NonBlockingRing& waited) : waited_(waited) {}
  void run(std::int64_t /*iteration*/, std::int64_t /*before*/) override { waited_.wait(); }

 private:
  NonBlockingRing& waited_;
};

// Exchanges with the neighbours in a grid of ranks.
class Halo final : public MessageStage {
 public:
  Halo(const Stage& stage, std::size_t number, Shop& shop)
      : MessageStage(stage, shop), parts_(sent_by_each(stage, number, shop)) {
    std::vector<int> grid(static_cast<std::size_t>(stage.dimensions), 0);
    MPI_Dims_create(ranks_.size, stage.dimensions, grid.data());
    neighbours_ = neighbours_of(grid, ranks_.rank);
    requests_.resize(2 * neighbours_.size());
    std::int64_t received_bytes = 0;
    for (const int neighbour : neighbours_) received_bytes += parts_[static_cast<std::size_t>(neighbour)];
    grow(mine(), received_bytes);
  }

 private:
  int mine() const { return parts_[static_cast<std::size_t>(ranks_.rank)]; }
  void call() override {
    char* to = received();
    auto request = requests_.begin();
    for (const int neighbour : neighbours_) {
      const int bytes = parts_[static_cast<std::size_t>(neighbour)];
      MPI_Irecv(to, bytes, MPI_BYTE, neighbour, tag, ranks_.comm, &*request++);
      to += bytes;
    }
    for (const int neighbour : neighbours_)
      MPI_Isend(sent(), mine(), MPI_BYTE, neighbour, tag, ranks_.comm, &*request++);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  std::vector<int> parts_, neighbours_;
  std::vector<MPI_Request> requests_;
};

class Broadcast final : public MessageStage {
 public:
  Broadcast(const Stage& stage, Shop& shop) : MessageStage(stage, shop), bytes_(static_cast<int>(stage.bytes)) {
    grow(bytes_, 0);
  }

 private:
  void call() override { MPI_Bcast(sent(), bytes_, MPI_BYTE, 0, ranks_.comm); }
  int bytes_;
};

// Adds double precision numbers, as most programs do.
class Sum final : public MessageStage {
 public:
  Sum(const Stage& stage, Shop& shop)
      : MessageStage(stage, shop),
        numbers_(static_cast<int>(std::max<std::int64_t>(1, stage.bytes / std::int64_t{sizeof(double)}))),
        all_(stage.kind == Kind::allreduce) {
    const std::int64_t bytes = std::int64_t{numbers_} * std::int64_t{sizeof(double)};
    grow(bytes, bytes);
  }

 private:
  void call() override {
    if (all_)
      MPI_Allreduce(sent(), received(), numbers_, MPI_DOUBLE, MPI_SUM, ranks_.comm);
    else
      MPI_Reduce(sent(), received(), numbers_, MPI_DOUBLE, MPI_SUM, 0, ranks_.comm);
  }
  int numbers_;
  bool all_;
};

class Allgatherv final : public MessageStage {
 public:
  Allgatherv(const Stage& stage, std::size_t number, Shop& shop) : MessageStage(stage, shop) {
    const auto parts = parts_of(stage.bytes, shares_of(stage, ranks_.size, shop.plan.seed, number));
    counts_.assign(parts.begin(), parts.end());
    places_ = places_of(counts_);
    grow(mine(), stage.bytes);
  }

 private:
  int mine() const { return counts_[static_cast<std::size_t>(ranks_.rank)]; }
  void call() override {
    MPI_Allgatherv(sent(), mine(), MPI_BYTE, received(), counts_.data(), places_.data(), MPI_BYTE, ranks_.comm);
  }
  std::vector<int> counts_, places_;
};

// Each rank sends its bytes to all ranks in equal parts.
class Alltoall final : public MessageStage {
 public:
  Alltoall(const Stage& stage, std::size_t number, Shop& shop) : MessageStage(stage, shop) {
    const std::vector<int> parts = sent_by_each(stage, number, shop);
    const auto size = static_cast<std::size_t>(ranks_.size);
    sent_counts_.assign(size, parts[static_cast<std::size_t>(ranks_.rank)] / ranks_.size);
    for (const int part : parts) received_counts_.push_back(part / ranks_.size);
    sent_places_ = places_of(sent_counts_);
    received_places_ = places_of(received_counts_);
    equal_ = std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) == parts.end();
    grow(total(sent_counts_), total(received_counts_));
  }

 private:
  static std::int64_t total(const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }
  void call() override {
    if (equal_)
      MPI_Alltoall(sent(), sent_counts_[0], MPI_BYTE, received(), sent_counts_[0], MPI_BYTE, ranks_.comm);
    else
      MPI_Alltoallv(sent(), sent_counts_.data(), sent_places_.data(), MPI_BYTE, received(), received_counts_.data(),
                    received_places_.data(), MPI_BYTE, ranks_.comm);
  }
  std::vector<int> sent_counts_, sent_places_, received_counts_, received_places_;
  bool equal_ = false;
};

}  // namespace

std::unique_ptr<StageRun> make_message(const Stage& stage, std::size_t number, Shop& shop) {
  switch (stage.kind) {
    case Kind::sendrecv: return std::make_unique<Ring>(stage, number, shop);
    case Kind::isend_irecv: return std::make_unique<NonBlockingRing>(stage, number, shop);
    case Kind::halo: return std::make_unique<Halo>(stage, number, shop);
    case Kind::broadcast: return std::make_unique<Broadcast>(stage, shop);
    case Kind::allgatherv: return std::make_unique<Allgatherv>(stage, number, shop);
    case Kind::alltoall: return std::make_unique<Alltoall>(stage, number, shop);
    default: return std::make_unique<Sum>(stage, shop);
  }
}

std::unique_ptr<StageRun> make_wait(StageRun& waited) {
  return std::make_unique<WaitStage>(dynamic_cast<NonBlockingRing&>(waited));
}

}  // namespace hocket::emulator
