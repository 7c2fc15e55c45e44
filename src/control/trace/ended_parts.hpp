// The parts of a trace that will not be written any more. They are compressed if the settings say so, and the oldest
// are removed beyond a limit.
//
// Compression has a thread of its own, of the least priority, because a part takes seconds. It is started with the
// first part. Other functions are called by the writer's thread. Nothing throws.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace hocket::trace {

class EndedParts {
 public:
  struct PartLimits {
    std::int64_t part_bytes = 0;  // of the part that is being written
    std::int64_t most_bytes = 0;  // of all parts with that one; 0: no limit
    bool compress = false;        // NAME.jsonl becomes NAME.jsonl.gz
  };

  explicit EndedParts(PartLimits limits) : limits_(limits) {}
  // Gives up what is being compressed: the part stays as it is.
  ~EndedParts();
  EndedParts(const EndedParts&) = delete;
  EndedParts& operator=(const EndedParts&) = delete;

  // Takes a part over, the newest of all. Without compression, its limit holds when this returns.
  void add(std::string path, std::int64_t bytes);

 private:
  struct EndedPart {
    std::string path;
    std::int64_t bytes = 0;
  };

  void keep(EndedPart part);
  void remove_oldest();
  void work();
  // Returns the bytes of the compressed file, which has replaced the part; 0 if that failed, and the part is there.
  std::int64_t compress(const std::string& path);
  bool is_leaving();

  const PartLimits limits_;
  std::deque<EndedPart> kept_;  // the oldest first; used by one thread, which is the worker if there is one
  std::int64_t kept_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<EndedPart> added_;  // not taken by the worker yet
  bool leaving_ = false;
  std::thread thread_;
};

}  // namespace hocket::trace
