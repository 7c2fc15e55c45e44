// Keeps what the application and its libraries have announced of the I/O to come: a stack of keys and values (CALCioM,
// section III-C, Prepare and Complete). The latest value of a key holds, except for sizes, which are kept for each
// level.
//
// A level that gives a size (`bytes`, `files`, `rounds` or `bytes_per_round`) announces I/O. The outermost such level
// bounds the prepared I/O phase: what is left of it counts from that level on, however many steps the phase has.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hocket::runtime {

// IoDone counts what all processes have done since the program began, as far as this process knows.
struct IoDone {
  std::int64_t bytes = 0;
  std::int64_t files = 0;  // accessed and closed
};

// IoLeft is the rest of the prepared phase. 0 means unknown, or that more was done than announced.
struct IoLeft {
  std::int64_t bytes = 0;
  std::int64_t files = 0;            // the present one included
  std::int64_t rounds = 0;           // in each file
  std::int64_t bytes_per_round = 0;  // of all processes
};

class Prepared {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  enum class Popped { nothing, level, phase };  // phase: no level announces I/O any more

  // Pushes a level. A value that should be a number and is none is left out, and `complain` gets one line about it.
  void push(const Pairs& pairs, const IoDone& done, const std::function<void(std::string_view)>& complain);
  // Removes the latest level, if there is one.
  Popped pop();
  // Counts from here on, as if all levels were pushed now.
  void count_anew(const IoDone& done);

  // True if a level announces I/O.
  bool announces() const;
  // Returns the latest value of the key, or "" if it has none.
  std::string value(std::string_view key) const;
  // Returns what is left of the prepared phase: the most that is left of any level's bytes and files, because those of
  // an inner level are a part of an outer level's. `rounds` and `bytes_per_round` are the latest.
  //
  // A level's bytes are its `bytes`, else its `files` * `rounds` * `bytes_per_round`, of which other levels may give
  // the last two. Without `files` or `rounds`, 1 is taken. Without `bytes_per_round`, an inner level that gives `bytes`
  // and `files` tells the bytes of a file. Closed files are counted; while none was closed, the files that are done
  // follow from the bytes.
  IoLeft left(const IoDone& done) const;
  // Returns a level's announced number of files if more were closed in it, else 0.
  std::int64_t files_exceeded(const IoDone& done) const;
  // Returns "KEY=VALUE\n" for each key, for START_IO. Lines that would make it longer than 8192 bytes are left out.
  std::string text() const;

 private:
  struct Level {
    Pairs pairs;
    IoDone before;  // what had been done when it began to count
  };
  static const std::string* find(const Level& level, std::string_view key);
  static bool announces(const Level& level);
  std::optional<double> number(std::string_view key) const;  // the latest value
  static std::optional<double> number_of(const Level& level, std::string_view key);
  std::optional<double> number_for(const Level& level, std::string_view key) const;
  double bytes_per_file_within(const Level& level) const;
  double size_of(const Level& level) const;
  double bytes_left(const IoDone& done) const;
  double files_left(const Level& level, const IoDone& done) const;

  std::vector<Level> levels_;  // the latest last
};

}  // namespace hocket::runtime
