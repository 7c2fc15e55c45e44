// Load balance: whether weighted arrays should be shared out anew, by the computing times of the processes. Pure.
//
// A new distribution pays if what the imbalance has cost exceeds what moving costs, and a second: then an imbalance
// that lasts as long again repays the move. So a program loses at most about twice what it would lose with perfect
// foresight, or a second, and moves that do not help become rarer and rarer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redistribute/partition.hpp"

namespace hocket::redistribute {

// The computing times of one process in several iterations.
class BusyWindow {
 public:
  void add(double busy_s);
  void add(const BusyWindow& other);
  std::int64_t count() const { return count_; }
  double mean_s() const;
  // Returns the standard error of the mean; infinite below four iterations, which say too little.
  double error_s() const;

 private:
  std::int64_t count_ = 0;
  double mean_s_ = 0;
  double squares_s2_ = 0;  // sum of the squared deviations from the mean
};

// What is known of one process.
struct ProcessTime {
  double busy_s = 0;  // computing time of an iteration, on average
  double error_s = 0;
  std::int64_t elements = 0;
};

// Returns the speed of each process in elements per second. One without elements, or without measured time, counts as
// average; if no process has a speed, all have the same.
std::vector<double> speeds(std::span<const ProcessTime> times);

// Returns by how much the slowest process computes longer in an iteration than the slowest would with shares by speed;
// 0 if this may be noise, or is less than 10 % of the computing time.
double avoidable_s(std::span<const ProcessTime> times);

// Returns the elements that change their process. Precondition: both partitions have the same number of parts.
std::int64_t elements_moved(const Partition& before, const Partition& after);

// What a redistribution costs, as estimated at first, and learnt from those that happened.
class MoveCost {
 public:
  double seconds(double bytes) const { return fixed_s_ + bytes * s_per_byte_; }
  // `moving_s`: time in which `bytes` moved and the application waited; `fixed_s`: time that it waited besides.
  void learn(double bytes, double moving_s, double fixed_s);

 private:
  double fixed_s_ = 0.01;
  double s_per_byte_ = 1e-8;  // of what moves; what stays is copied, too
};

// Decides when to look at the computing times, and whether to move. One object, in the process that decides.
class Rebalancing {
 public:
  // Iterations between two looks: the shortest distance doubles to the longest while there is no imbalance.
  static constexpr std::int64_t shortest = 8;
  static constexpr std::int64_t longest = 1024;

  // Counts an iteration; true if the times should be looked at after it.
  bool is_look_due() { return ++iterations_ > distance_; }
  // Looks at the times since the last look or move, over `iterations`. `remaining`: iterations at most to come. Returns
  // true if the data should move now, which costs `move_s`.
  bool look(std::span<const ProcessTime> times, std::int64_t iterations, std::int64_t remaining, double move_s);
  // The data have moved, whether by this object's advice or not.
  void moved();

 private:
  void judge_last_move(double slowest_s);
  void count_from_here(std::int64_t distance);

  std::int64_t distance_ = shortest;  // from the last look to the next one
  std::int64_t iterations_ = 0;       // since the last look; the first one after a move is not measured
  int seen_ = 0;                      // looks in a row that found an imbalance
  double lost_s_ = 0;                 // what it has cost in their iterations
  double patience_ = 1;               // factor on the price of a move: doubles with each one that did not help
  double promised_s_ = 0;             // what the last move was to save in each iteration; 0: it has been judged
  double slowest_s_ = 0;              // computing time of the slowest process before it
};

}  // namespace hocket::redistribute
