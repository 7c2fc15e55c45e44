#include "trace/recorder.hpp"

#include <sys/eventfd.h>

#include <system_error>
#include <utility>

#include "base/saturating.hpp"
#include "trace/packed.hpp"

namespace hocket::trace {
namespace {

// Empty buffers that are kept. More are pending only while the disk does not keep up.
constexpr std::size_t most_spare = 4;

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(std::string path, const TraceHeader& header, TraceSizes sizes,
                                                   std::size_t queued_bytes) {
  std::unique_ptr<Recorder> recorder{new Recorder{queued_bytes}};
  Recorder& self = *recorder;
  self.told_ = Fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!self.told_) return Error{"cannot write a trace: " + error_text(errno)};
  auto writer = Writer::create(
      std::move(path), header,
      [&self](const std::string& text) {
        const std::lock_guard lock(self.mutex_);
        self.error_ = text;
        self.broken_ = true;
      },
      sizes);
  if (!writer) return writer.error();
  self.writer_.emplace(std::move(writer).value());
  self.path_ = self.writer_->path();
  if (self.is_broken()) self.tell();  // the header could not be written
  try {
    self.thread_ = std::thread([&self] { self.work(); });
  } catch (const std::system_error& none) {
    return Error{std::string{"cannot start a thread that writes the trace: "} + none.what()};
  }
  return recorder;
}

Recorder::~Recorder() {
  if (!thread_.joinable()) return;
  if (missing_ > 0) record_gap();
  flush();
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  come_.notify_one();
  thread_.join();
}

// ---- the deciding thread -------------------------------------------------------------------------------------------

bool Recorder::takes_events() {
  const std::size_t waits = queued_bytes_.load(std::memory_order_relaxed) + pending_.size();
  if (!leaves_out_) return !(leaves_out_ = waits >= most_queued_);
  if (waits > most_queued_ / 2) return false;
  leaves_out_ = false;
  record_gap();
  return true;
}

void Recorder::record_gap() {
  const event::Body gap = event::EventsLost{std::exchange(missing_, 0)};
  pack({Direction::out, newest_, {}, {}, {}, gap}, pending_);
}

void Recorder::add_event(const event::Event& event) {
  if (is_broken()) return;
  newest_ = event.time;
  if (!takes_events()) {
    ++missing_;
    ++lost_;
    return;
  }
  pack({Direction::in, event.time, event.origin.node, event.origin.application, event.origin.member, event.body},
       pending_);
  if (!due_) due_ = saturating_sum(event.time, Writer::longest_delay);
  if (pending_.size() >= batch_bytes) due_ = event.time;
}

void Recorder::add_command(Time time, std::string_view application, MemberId to, const event::Body& command) {
  if (is_broken()) return;
  if (leaves_out_) {
    ++missing_;
    ++lost_;
    return;
  }
  pack({Direction::out, time, {}, application, to, command}, pending_);
}

std::uint64_t Recorder::flush() {
  due_.reset();
  if (pending_.empty()) return flushed_;
  ++flushed_;
  queued_bytes_ += pending_.size();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(pending_));
    pending_ = spare_.empty() ? std::string{} : std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
  }
  come_.notify_one();
  pending_.clear();
  return flushed_;
}

void Recorder::notify_when_written(std::uint64_t flushed) {
  awaited_ = flushed;
  if (is_written(flushed)) tell();  // the thread may not have seen it in time
}

void Recorder::clear() {
  std::uint64_t times = 0;
  (void)!read(told_.get(), &times, sizeof times);
}

std::string Recorder::path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

std::string Recorder::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// ---- the recorder's thread -----------------------------------------------------------------------------------------

void Recorder::tell() const {
  constexpr std::uint64_t once = 1;
  (void)!::write(told_.get(), &once, sizeof once);
}

void Recorder::work() {
  std::string batch;
  while (next_batch(batch)) {
    write(batch);
    queued_bytes_ -= batch.size();
    const std::uint64_t now_written = ++written_;
    std::uint64_t awaited = awaited_;
    // Another flush may be awaited meanwhile; its notice stays then.
    if (awaited > 0 && now_written >= awaited && awaited_.compare_exchange_strong(awaited, 0)) tell();
  }
  writer_.reset();
}

bool Recorder::next_batch(std::string& batch) {
  std::unique_lock lock(mutex_);
  batch.clear();
  if (batch.capacity() > 0 && spare_.size() < most_spare) spare_.push_back(std::move(batch));
  come_.wait(lock, [this] { return leaving_ || !queue_.empty(); });
  if (queue_.empty()) return false;
  batch = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

void Recorder::write(const std::string& batch) {
  if (is_broken()) return;
  for (std::string_view rest{batch}; !rest.empty();) {
    unpack(rest, record_);
    writer_->add(record_.direction, std::move(record_.event));
  }
  writer_->flush();
  if (is_broken()) tell();
  const std::lock_guard lock(mutex_);
  if (path_ != writer_->path()) path_ = writer_->path();
}

}  // namespace hocket::trace
