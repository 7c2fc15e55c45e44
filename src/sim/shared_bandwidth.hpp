// A storage target: a bandwidth shared among the transfers that are under way, max-min fairly, in proportion to their
// weights. A transfer that cannot use its part gets its most, and what it leaves is shared among the others.
//
// With the level for what each of the sharing ones gets for a weight of 1, a transfer is either *limited* (it gets its
// most, and its end is known) or *sharing*; sharing ones are kept by the virtual time at which they end, which runs at
// the level (processor sharing), so that an arrival or an end changes nothing but the level. A change costs O(log n)
// and as much for each transfer that the level passes by, becoming limited or sharing.
//
// That is `Sharing::fair`, where all weights are 1 unless a grant says less, and `Sharing::proportional`, where the
// caller gives each transfer the processes of its application as its weight. In `Sharing::queued` each transfer has
// handed all of its data to the target at its start, and is served in proportion to what of it is left, so that
// transfers that overlap end together: what remains of all of them, divided by the bandwidth, later. No transfer has a
// most or a weight of its own then; a change costs O(1).
//
// Interference: n transfers at once get bandwidth / (1 + (interference - 1) (n - 1) / n) all together: with 1 nothing
// is lost, and many writers at once take `interference` times as long as one after the other.
//
// Deterministic, not thread-safe. Bandwidths in bytes per second.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/time.hpp"
#include "sim/indexed_heap.hpp"

namespace hocket::sim {

enum class Sharing { fair, queued, proportional };

class SharedBandwidth {
 public:
  using Transfer = IndexedHeap<double>::Number;  // numbers are used again

  explicit SharedBandwidth(double bytes_per_s, double interference = 1, Sharing sharing = Sharing::fair)
      : bandwidth_(bytes_per_s), interference_(interference), sharing_(sharing) {}

  // Time must not go back in any of these.
  Transfer start(Time now, double bytes, double most_bytes_per_s, double weight = 1);
  // Those that have ended by now, appended. To be called when `next_end` has come.
  void take_ended(Time now, std::vector<Transfer>& ended);
  // These three are for one that is under way. Bytes:
  double left(Time now, Transfer transfer);
  // Takes it out before its end; tells what is left of it.
  double stop(Time now, Transfer transfer);
  void set_weight(Time now, Transfer transfer, double weight);

  // If nothing else starts; Time::max(): nothing is under way.
  Time next_end() const;
  std::size_t active() const { return limited_by_end_.size() + sharing_by_end_.size() + queued_.size(); }
  // Bytes per second, at present. Precondition: it is under way, and sharing is fair.
  double rate(Transfer transfer) const;

  // Until the last call: while at least one was under way; at least two.
  Duration busy() const { return busy_; }
  Duration overlap() const { return overlap_; }

 private:
  struct State {
    double most = 0;
    double weight = 1;
    double left = 0;         // bytes at `since`, while limited; queued: as a part of `queued_scale_`
    Time since{};            // while limited
    double virtual_end = 0;  // while sharing
    std::size_t place = 0;   // in `queued_`
    double most_level() const { return most / weight; }
  };
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  Transfer new_transfer();
  void enqueue(Transfer transfer, double bytes);
  void dequeue(Transfer transfer, double bytes);
  void advance(Time now);
  void rebalance();
  void limit(Transfer transfer);
  void share(Transfer transfer);
  void put_among_sharing(Transfer transfer, double bytes);
  void take_out(Transfer transfer);
  void remove(Transfer transfer);
  double left_now(Transfer transfer) const;
  double together() const;
  // With limited transfers of that weight and bandwidth in all taken into the sharing ones.
  double level_with(double weight, double most) const;

  double bandwidth_;
  double interference_;
  Sharing sharing_;
  Time now_{};
  double virtual_ = 0;      // bytes that a sharing transfer of weight 1 has got since all were idle
  double level_ = 0;        // bytes per second for each sharing transfer of weight 1
  double weight_sum_ = 0;   // of the sharing ones
  double limited_sum_ = 0;  // bytes per second
  std::vector<State> states_;
  std::vector<Transfer> unused_;
  IndexedHeap<Time> limited_by_end_;
  IndexedHeap<double> limited_by_most_;  // by the level at which they get it, negative: the largest first
  IndexedHeap<double> sharing_by_end_;
  IndexedHeap<double> sharing_by_most_;  // those that have a most, by the level at which they get it
  std::vector<Transfer> queued_;         // all there are, where sharing is `queued`
  double queued_bytes_ = 0;              // left of all of them
  double queued_scale_ = 1;              // of each of them the same part is served in the same time
  Duration busy_{};
  Duration overlap_{};
};

}  // namespace hocket::sim
