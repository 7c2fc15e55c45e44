// Order of the destination ranks of a reconfiguration: which process gets which part, so that as many bytes as possible
// stay in place. Pure.
//
// Processes that stay keep their order among each other, and process 0 keeps part 0. Among all such orders the one
// returned keeps the most. If every array is divided into equal ranges, no other order keeps more either, as
// order_test.cpp shows by trying all.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "redistribute/distribution.hpp"

namespace hocket::redistribute {

// Bytes that each source holds of each part of the new distribution, over several arrays.
class Overlap {
 public:
  Overlap(int sources, int parts);
  // Adds an array. Preconditions: before.parts() == sources, after.parts() == parts.
  void add(const ElementDistribution& before, const ElementDistribution& after, double element_bytes);
  int sources() const { return static_cast<int>(bytes_.size()); }
  int parts() const { return parts_; }
  double bytes(int source, int part) const;

 private:
  int parts_;
  std::vector<std::map<int, double>> bytes_;  // of each source, by part; absent: 0
};

// Whether a source rank may be among the destination ranks.
enum class Fate { stays, may_leave, leaves };

constexpr int newcomer = -1;

// Returns the source of each part, or `newcomer`. Sources that may leave do so as needed; among equals the last ones
// do. If there are fewer sources than parts, newcomers get the other parts, and no source leaves. Preconditions:
// fates[0] is stays; with k sources that stay and m that may leave, k <= parts, and either parts <= k + m or every
// source stays.
std::vector<int> order_of_parts(const Overlap& overlap, std::span<const Fate> fates);

}  // namespace hocket::redistribute
