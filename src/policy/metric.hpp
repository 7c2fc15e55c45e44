// What the operator wants little of: the metric of machine-wide efficiency that `dynamic` minimises (CALCioM, sections
// III-A and IV-D).
//
// A name, or a formula over what each application that wants the target will have had of it:
//
//   cpu-time      sum(processes * io_time)    process seconds spent in I/O, waits included (section IV-D)
//   io-time       sum(io_time)
//   interference  sum(io_time / alone)        the sum of interference factors (section III-A)
//   makespan      max(end)                    until the last of them is through
//
// A formula has numbers, `+ - * / ^`, parentheses, the names `processes`, `io_time` (s, from the start of the I/O phase
// to its end), `alone` (s, the same without others), `end` (s from now until its end), and sum, mean, max and min of an
// expression over all applications. One without any of these four is summed.
//
// Pure. A metric is immutable: it may be read by several threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::policy {

// What is expected of one application's I/O phase.
struct Expected {
  double processes = 1;
  double io_time_s = 0;
  double alone_s = 0;
  double end_s = 0;
};

class Metric {
 public:
  Metric() = default;  // cpu-time

  // The error names what is wrong and where: an unknown name and the nearest known one, what a formula lacks, a formula
  // that has no finite value for applications as there are.
  static Result<Metric> parse(std::string_view text);

  // The lower the better. Not finite where the formula is not, for these.
  double of(std::span<const Expected> applications) const;

  // As it was given.
  const std::string& text() const { return text_; }

 private:
  enum class Kind : std::uint8_t { number, name, negate, add, subtract, multiply, divide, power, sum, mean, max, min };
  // Operands are nodes before it: of a formula in postfix order.
  struct Node {
    Kind kind = Kind::number;
    double number = 0;
    double Expected::*value = nullptr;
    std::size_t left = 0;
    std::size_t right = 0;
  };
  class Parser;

  double evaluate(std::size_t node, std::span<const Expected> applications, const Expected* one) const;
  double aggregate(const Node& node, std::span<const Expected> applications) const;

  std::string text_ = "cpu-time";
  std::vector<Node> nodes_;  // the last one is the whole; empty: cpu-time
};

}  // namespace hocket::policy
