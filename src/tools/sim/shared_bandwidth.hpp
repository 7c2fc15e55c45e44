// A storage target whose bandwidth is shared among concurrent transfers, max-min fairly and in proportion to their
// weights. A transfer that cannot use its part gets its own maximum, and the others share the rest.
//
// The *level* is the bandwidth that each sharing transfer gets for a weight of 1. A transfer is either *limited* (it
// gets its maximum, and its end is known) or *sharing*. Sharing transfers are ordered by the virtual time at which
// they end. Virtual time runs at the level (processor sharing), so an arrival or an end changes nothing but the
// level. A change costs O(log n), and as much again for each transfer that becomes limited or sharing.
//
// `BandwidthSharing::fair` works so: all weights are 1 unless a grant gives a smaller share. With
// `BandwidthSharing::proportional` it is the same, but the caller passes the application's number of processes as the
// weight. With `BandwidthSharing::queued` each transfer hands all its data to the target at its start. The target
// serves transfers in proportion to what is left of each, so overlapping transfers end together, after the sum of what
// is left divided by the bandwidth. Transfers then have neither a maximum nor a weight; a change costs O(1).
//
// Interference: n concurrent transfers get bandwidth / (1 + (interference - 1) (n - 1) / n) together. With 1 nothing
// is lost; many concurrent writers take `interference` times as long as one after the other.
//
// A target may have a write cache. Until the cache is full, it takes data at its own, higher rate; it empties at the
// bandwidth, also while nobody writes. A full cache takes what it empties, so all transfers together get the bandwidth.
//
// Deterministic, not thread-safe. Bandwidths are bytes per second.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/time.hpp"
#include "sim/indexed_heap.hpp"

namespace hocket::sim {

enum class BandwidthSharing { fair, queued, proportional };

// The memory of the storage servers in front of their disks.
struct WriteCache {
  double bytes = 0;        // 0: the target has none
  double bytes_per_s = 0;  // rate at which it takes data while it is not full; at least the target's bandwidth
};

// One target. The caller drives it: it starts transfers, asks for the next end, and collects transfers that have
// ended.
class SharedBandwidth {
 public:
  using TransferNumber = IndexedHeap<double>::HeapNumber;  // numbers are reused

  explicit SharedBandwidth(double bytes_per_s, double interference = 1,
                           BandwidthSharing sharing = BandwidthSharing::fair, WriteCache cache = {})
      : bandwidth_(bytes_per_s),
        interference_(interference),
        sharing_(sharing),
        cache_(cache),
        cache_full_(cache.bytes <= 0) {}

  // Starts a transfer and returns its number. In every function with `now`, time must not go back. `most_bytes_per_s`
  // is the maximum that the transfer can use; queued targets ignore it and `weight`.
  TransferNumber start(Time now, double bytes, double most_bytes_per_s, double weight = 1);
  // Appends the transfers that have ended by `now`, and forgets them. Call it at the time of `next_end`.
  void take_ended(Time now, std::vector<TransferNumber>& ended);
  // Returns the bytes that are left. Precondition of this and the next two: the transfer is under way.
  double left(Time now, TransferNumber transfer);
  // Removes the transfer before its end, and returns the bytes that are left of it.
  double stop(Time now, TransferNumber transfer);
  // Changes the weight from now on. Queued targets ignore it.
  void set_weight(Time now, TransferNumber transfer, double weight);

  // Returns when the next transfer ends or the write cache is full if nothing else starts, or Time::max() if no
  // transfer is under way.
  Time next_end() const;
  std::size_t active() const { return limited_by_end_.size() + sharing_by_end_.size() + queued_.size(); }
  // Returns the present rate in bytes per second. Precondition: the transfer is under way, and the sharing is not
  // queued.
  double rate(TransferNumber transfer) const;

  // Time with at least one transfer under way, and with at least two, up to the last call with a `now`.
  Duration busy() const { return busy_; }
  Duration overlap() const { return overlap_; }

 private:
  // The state of one transfer. Which members are valid depends on the heap or list that holds the transfer.
  struct TransferState {
    double most = 0;
    double weight = 1;
    double left = 0;         // limited: bytes at `since`; queued: bytes divided by `queued_scale_`
    Time since{};            // valid while limited
    double virtual_end = 0;  // valid while sharing
    std::size_t place = 0;   // position in `queued_`
    double most_level() const { return most / weight; }
  };
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  TransferNumber new_transfer();
  void enqueue(TransferNumber transfer, double bytes);
  void dequeue(TransferNumber transfer, double bytes);
  // Moves the clock to `now`: accounts busy time, virtual time, cached bytes, and the bytes of queued transfers.
  void advance(Time now);
  void advance_cache(Duration passed);
  // Restores max-min fairness after a change: moves transfers between limited and sharing, and sets the level.
  void rebalance();
  // Make a transfer limited or sharing; what is left of it stays the same.
  void limit(TransferNumber transfer);
  void share(TransferNumber transfer);
  void put_among_sharing(TransferNumber transfer, double bytes);
  // Removes the transfer from its heaps. `remove` also frees its number.
  void take_out(TransferNumber transfer);
  void remove(TransferNumber transfer);
  double left_now(TransferNumber transfer) const;
  // Returns the bandwidth of the disks, after interference, and of all transfers together.
  double disks() const;
  double together() const { return cache_full_ ? disks() : cache_.bytes_per_s; }
  // Returns the rate of all transfers at present.
  double inflow() const;
  // Returns the level if limited transfers of this total weight and bandwidth became sharing.
  double level_with(double weight, double most) const;

  double bandwidth_;
  double interference_;
  BandwidthSharing sharing_;
  WriteCache cache_;
  double cached_ = 0;  // bytes in the write cache
  bool cache_full_;    // true without a cache
  Time now_{};
  double virtual_ = 0;      // bytes that a sharing transfer of weight 1 got since the target was last idle
  double level_ = 0;        // bytes per second for each sharing transfer of weight 1
  double weight_sum_ = 0;   // weight of all sharing transfers
  double limited_sum_ = 0;  // bytes per second of all limited transfers
  std::vector<TransferState> states_;
  std::vector<TransferNumber> unused_;
  IndexedHeap<Time> limited_by_end_;
  IndexedHeap<double> limited_by_most_;  // negated level at which they reach their maximum: the largest first
  IndexedHeap<double> sharing_by_end_;
  IndexedHeap<double> sharing_by_most_;  // those with a maximum, by the level at which they reach it
  std::vector<TransferNumber> queued_;   // all transfers, if sharing is `queued`
  double queued_bytes_ = 0;              // bytes left of all queued transfers
  // Factor on the bytes of each queued transfer: the target serves the same part of each in the same time.
  double queued_scale_ = 1;
  Duration busy_{};
  Duration overlap_{};
};

}  // namespace hocket::sim
