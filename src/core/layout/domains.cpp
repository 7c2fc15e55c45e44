#include "layout/domains.hpp"

#include <string>

namespace hocket::layout {

Result<Domains> Domains::make(Extent file, int aggregators, std::int64_t block_bytes) {
  if (file.first < 0 || file.end < file.first || file.end > limit) {
    return Error{"file domains of bytes " + std::to_string(file.first) + " to " + std::to_string(file.end) +
                 ": they are not an interval of a file"};
  }
  if (aggregators < 1) return Error{"file domains for " + std::to_string(aggregators) + " aggregators: use 1 or more"};
  if (block_bytes < 1 || block_bytes > limit) {
    return Error{"file domains in blocks of " + std::to_string(block_bytes) + " bytes: use 1 or more"};
  }
  Domains domains;
  domains.file_ = file;
  domains.aggregators_ = aggregators;
  domains.block_ = block_bytes;
  domains.first_block_ = file.first / block_bytes;
  const std::int64_t blocks = file.count() == 0 ? 0 : (file.end - 1) / block_bytes + 1 - domains.first_block_;
  domains.share_ = blocks / aggregators;
  domains.larger_ = blocks % aggregators;
  return domains;
}

Extent Domains::domain(int aggregator) const {
  const auto bound = [this](std::int64_t k) {
    const std::int64_t block = first_block_ + k * share_ + std::min(k, larger_);
    return std::clamp(block * block_, file_.first, file_.end);
  };
  return {bound(aggregator), bound(aggregator + 1)};
}

int Domains::owner(std::int64_t offset) const {
  const std::int64_t block = offset / block_ - first_block_;
  const std::int64_t in_larger = larger_ * (share_ + 1);
  if (block < in_larger) return static_cast<int>(block / (share_ + 1));
  return static_cast<int>(larger_ + (block - in_larger) / share_);
}

}  // namespace hocket::layout
