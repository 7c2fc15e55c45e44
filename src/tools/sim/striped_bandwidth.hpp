// A storage target of several parts, such as OSTs. Each part has an equal share of the target's bandwidth and write
// cache and works by itself (shared_bandwidth.hpp). A transfer is striped: each of its parts takes an equal share of
// its bytes, and it ends when the last part has its share. A target that names no parts has a single one.
//
// Deterministic, not thread-safe. Bandwidths are bytes per second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "sim/shared_bandwidth.hpp"

namespace hocket::sim {

class StripedBandwidth {
 public:
  using TransferNumber = SharedBandwidth::TransferNumber;  // numbers are reused
  using PartNumbers = std::vector<std::size_t>;            // none: all parts

  explicit StripedBandwidth(double bytes_per_s, double interference = 1,
                            BandwidthSharing sharing = BandwidthSharing::fair, WriteCache cache = {},
                            std::size_t parts = 1);

  // These do for a transfer on some parts what those of SharedBandwidth do, and have the same conditions.
  TransferNumber start(Time now, double bytes, double most_bytes_per_s, double weight = 1, const PartNumbers& on = {});
  void take_ended(Time now, std::vector<TransferNumber>& ended);
  double left(Time now, TransferNumber transfer);
  double stop(Time now, TransferNumber transfer);
  void set_weight(Time now, TransferNumber transfer, double weight);
  Time next_end() const;
  std::size_t active() const { return active_; }

  // Time with at least one transfer under way, and with at least two, up to the last call with a `now`.
  Duration busy() const { return busy_; }
  Duration overlap() const { return overlap_; }

 private:
  struct Stripe {
    std::size_t part;
    TransferNumber transfer;
  };
  void advance(Time now);
  void remove(TransferNumber transfer);

  std::vector<SharedBandwidth> parts_;
  std::vector<std::vector<TransferNumber>> owners_;  // by part and its transfer number
  std::vector<std::vector<Stripe>> stripes_;         // under way, by transfer
  std::vector<TransferNumber> unused_;
  std::vector<TransferNumber> ended_;
  std::size_t active_ = 0;
  Time now_{};
  Duration busy_{};
  Duration overlap_{};
};

}  // namespace hocket::sim
