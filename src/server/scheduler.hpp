// In which order requests are carried out, and which of them together. Pure.
//
// Requests that wait for the same file are made one batch, in the order of their offsets, where neighbours become one
// access. Of two requests that overlap, of which one writes, the one that came first is carried out first: the later
// one waits until that has been done, and so does whatever overlaps the later one in turn. Everything else may be
// reordered. Several batches of a file may be under way at a time, for none overlaps another. Files take turns.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "transport/frame.hpp"

namespace hocket::server {

using transport::FileRun;

struct Request {
  std::uint64_t ticket = 0;
  std::uint64_t file = 0;
  bool writes = false;
  std::vector<FileRun> runs;  // rising, apart, at least one; the data lie one behind the other
};

// Bytes of one request that are one run of the file.
struct Fragment {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::uint32_t request = 0;  // which one of the batch
  std::int64_t data = 0;      // where in its data
  std::int64_t end() const { return at + length; }
  bool operator==(const Fragment&) const = default;
};

// One access to the file.
struct Stretch {
  std::int64_t at = 0;
  std::int64_t end = 0;
  std::size_t first = 0;  // of its fragments
  std::size_t count = 0;
  bool seamless = true;  // its fragments touch, and do not overlap
};

struct Batch {
  std::uint64_t number = 0;
  std::uint64_t file = 0;
  bool writes = false;
  std::vector<std::uint64_t> tickets;  // of its requests
  std::vector<Fragment> fragments;     // by offset
  std::vector<Stretch> stretches;      // by offset
};

class Scheduler {
 public:
  struct Settings {
    bool merges = true;                     // false: one request is one batch
    std::int64_t most_bytes = 16 << 20;     // of a batch, where it is of more than one request
    std::int64_t most_read_gap = 16 << 10;  // what lies between two reads is read too, up to so many bytes
  };
  explicit Scheduler(Settings settings) : settings_(settings) {}

  // The order of the calls is the order in which overlapping requests are carried out.
  void add(Request request);
  // What can be carried out now, beside what is under way; nothing where there is none.
  std::optional<Batch> next();
  // The batch has been carried out.
  void done(const Batch& batch);
  // Takes back the requests that have not been given to anybody, where `which` says so; gives their tickets.
  std::vector<std::uint64_t> drop_if(const std::function<bool(std::uint64_t ticket)>& which);

  std::size_t waiting() const { return waiting_; }

 private:
  struct UnderWay {
    std::uint64_t batch;
    bool writes;
    std::vector<FileRun> runs;
  };
  struct File {
    std::deque<Request> waiting;
    std::vector<UnderWay> under_way;
  };

  std::size_t candidates(const File& file) const;
  static std::vector<bool> blocked(const File& file, std::size_t candidates);
  std::optional<Batch> next_of(std::uint64_t number, File& file);
  void join(Batch& batch) const;

  Settings settings_;
  std::map<std::uint64_t, File> files_;
  std::uint64_t last_file_ = 0;
  std::uint64_t last_batch_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace hocket::server
