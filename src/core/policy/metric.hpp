// A metric measures the machine-wide cost of what a policy could do. The policies `cost` and `dynamic` minimise the
// metric that the operator chooses (CALCioM, sections III-A and IV-D).
//
// It is a name, or a formula over the expected I/O phases of all applications that want the target:
//
//   cpu-time      sum(processes * io_time)    process seconds spent in I/O, waits included (section IV-D)
//   io-time       sum(io_time)
//   interference  sum(io_time / alone)        the sum of interference factors (section III-A)
//   makespan      max(end)                    the end of the last application
//
// A formula may use numbers, `+ - * / ^`, parentheses, the names below, and sum, mean, max and min of an expression
// over all applications. A formula without any of these four is summed.
//
//   processes   number of processes that compute
//   io_time     s, from the start of the I/O phase to its end
//   alone       s, the same without others
//   end         s, from now until its end
//   flops       FLOP/s while the application computes; if one contender's are unknown, the processes of each
//   run_time    s, from the start of the application to the end of the I/O phase
//
// Pure. A metric is immutable, so several threads may read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::policy {

// The expected course of one application's I/O phase. A formula's names stand for these members.
struct ExpectedPhase {
  double processes = 1;
  double io_time_s = 0;
  double alone_s = 0;
  double end_s = 0;
  double flops = 1;  // FLOP/s
  double run_time_s = 0;
};

class Metric {
 public:
  Metric() = default;  // cpu-time

  // Parses a name or a formula of at most 1000 characters. The error says what is wrong and where: an unknown name and
  // the nearest known one, what the formula lacks, or that it has no finite value for typical applications.
  static Result<Metric> parse(std::string_view text);

  // Returns the value for these applications; lower is better. It may be infinite or NaN, e.g. after a division by 0.
  double of(std::span<const ExpectedPhase> applications) const;

  // True if the formula names `flops`. To find them costs more than the rest of a comparison.
  bool uses_flops() const;

  const std::string& text() const { return text_; }  // as it was parsed

 private:
  enum class FormulaNodeKind : std::uint8_t {
    number,
    name,
    negate,
    add,
    subtract,
    multiply,
    divide,
    power,
    sum,
    mean,
    max,
    min
  };
  // One node of a formula in postfix order: its operands are earlier nodes.
  struct FormulaNode {
    FormulaNodeKind kind = FormulaNodeKind::number;
    double number = 0;
    double ExpectedPhase::*value = nullptr;
    std::size_t left = 0;
    std::size_t right = 0;
  };
  class Parser;

  double evaluate(std::size_t node, std::span<const ExpectedPhase> applications, const ExpectedPhase* one) const;
  double aggregate(const FormulaNode& node, std::span<const ExpectedPhase> applications) const;

  std::string text_ = "cpu-time";
  std::vector<FormulaNode> nodes_;  // the last node is the whole formula; empty: cpu-time
};

}  // namespace hocket::policy
