// Writes the trace of a daemon in a thread of its own: text, files, parts and compression. The thread that decides only
// packs events (trace/packed.hpp), and touches no file.
//
//   deciding thread: add_event, add_command ──► packed events ──► flush ──► queue ──► Writer   (the recorder's thread)
//
// The queue is bounded. While it is full, because the disk does not keep up, events are left out, each with its
// commands. The trace then has an EVENTS_LOST command with the number of missing records at that place: a replay ends
// there. Nobody waits.
//
// One thread calls all functions but those that say otherwise. Nothing throws.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "trace/writer.hpp"

namespace hocket::trace {

class Recorder {
 public:
  // Bytes of packed events that wait for the disk, at most. Events are taken again when half of them is written.
  static constexpr std::size_t most_queued_bytes = 64 << 20;
  // A flush is due when so many bytes are pending.
  static constexpr std::size_t batch_bytes = 64 << 10;

  // Creates the file (Writer::create), and starts the thread. Signals that the caller has blocked are blocked in it.
  static Result<std::unique_ptr<Recorder>> create(std::string path, const TraceHeader& header, TraceSizes sizes = {},
                                                  std::size_t queued_bytes = most_queued_bytes);
  // Waits until everything is written.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Packs an event, and after it the commands that it has caused.
  void add_event(const event::Event& event);
  void add_command(Time time, std::string_view application, MemberId to, const event::Body& command);

  // Returns the latest time for the next `flush`; nothing if no record is pending.
  std::optional<Time> due() const { return due_; }
  // Hands the pending records to the thread. Returns their number in the order of flushes, for `is_written`.
  std::uint64_t flush();
  // True if the records of that flush, and all before, are in the file, or can no longer be written.
  bool is_written(std::uint64_t flushed) const { return written_.load() >= flushed; }
  // Returns a descriptor that becomes readable after a flush for which `notify_when_written` was called, and when
  // writing has failed. `clear` makes it unreadable again.
  int descriptor() const { return told_.get(); }
  void notify_when_written(std::uint64_t flushed);
  void clear();

  // Returns the path of the part that is being written. Thread-safe, like `error`.
  std::string path() const;
  // Returns why the trace can no longer be written, in one line; "": it can.
  std::string error() const;
  // True once writing has failed. Further records are dropped then.
  bool is_broken() const { return broken_.load(); }
  // Number of records that were left out, for lack of room in the queue.
  std::int64_t lost() const { return lost_; }

 private:
  explicit Recorder(std::size_t queued_bytes) : most_queued_(queued_bytes) {}

  // True if the next event is to be taken; ends a gap with its record.
  bool takes_events();
  void record_gap();
  void work();
  // Waits for the next batch. Returns false once all are taken and the recorder ends.
  bool next_batch(std::string& batch);
  void write(const std::string& batch);
  void tell() const;

  const std::size_t most_queued_;
  Fd told_;  // eventfd

  // Used by the deciding thread.
  std::string pending_;
  std::optional<Time> due_;
  Time newest_{};             // time of the last event
  bool leaves_out_ = false;   // the queue was full
  std::int64_t missing_ = 0;  // records of the present gap
  std::int64_t lost_ = 0;
  std::uint64_t flushed_ = 0;

  // Used by both.
  mutable std::mutex mutex_;
  std::condition_variable come_;
  std::deque<std::string> queue_;
  std::vector<std::string> spare_;  // empty buffers, to be used again
  std::string path_;
  std::string error_;
  bool leaving_ = false;
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<std::uint64_t> written_{0};  // flushes
  std::atomic<std::uint64_t> awaited_{0};  // flush after which the descriptor becomes readable; 0: none
  std::atomic<bool> broken_{false};

  // Used by the recorder's thread, once it runs.
  std::optional<Writer> writer_;
  Record record_;
  std::thread thread_;
};

}  // namespace hocket::trace
