#include "io_client/waiting.hpp"

#include <algorithm>
#include <vector>

#include "base/clock.hpp"

namespace hocket::io_client {
namespace {

// Silence after which a server is lost; longer than any pause of a storage that is only slow.
constexpr Duration silence_bound = std::chrono::seconds{30};

void lose_pending(std::span<ServedFile> files, const char* why) {
  for (ServedFile& file : files)
    if (file.pending() > 0) file.lose(why);
}

// Loses the files that have pending requests when a wait ends, also by an exception: their answers would write to the
// caller's memory.
class NothingPending {
 public:
  explicit NothingPending(std::span<ServedFile> files) : files_(files) {}
  ~NothingPending() { lose_pending(files_, "given up"); }  // short enough to need no memory, which may have run out
  NothingPending(const NothingPending&) = delete;
  NothingPending& operator=(const NothingPending&) = delete;

 private:
  std::span<ServedFile> files_;
};

// Returns what poll(2) is to wait for.
std::vector<pollfd> connections_of(std::span<ServedFile> files) {
  std::vector<pollfd> connections;
  for (ServedFile& file : files)
    if (!file.lost()) connections.push_back({file.link().descriptor(), file.link().events(), 0});
  return connections;
}

}  // namespace

void DescriptorWait::pause(std::span<pollfd> connections, Duration, Duration left, bool) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  ::poll(connections.data(), connections.size(), static_cast<int>(ms));
}

std::size_t pending(std::span<const ServedFile> files) {
  std::size_t sum = 0;
  for (const ServedFile& file : files) sum += file.pending();
  return sum;
}

bool any_lost(std::span<const ServedFile> files) {
  return std::any_of(files.begin(), files.end(), [](const ServedFile& file) { return file.lost(); });
}

int take_error(std::span<ServedFile> files) {
  int first = 0;
  for (ServedFile& file : files)
    if (const int error = file.take_error(); first == 0) first = error;
  return first;
}

void wait(std::span<ServedFile> files, WaitStrategy&& how, FunctionRef<StepResult()> go_on) {
  const NothingPending at_the_end{files};
  Time last = node_now();  // when something moved
  Time due = last;         // since when an answer is due
  for (StepResult step = go_on(); !step.done; step = go_on()) {
    bool moved = false;
    for (ServedFile& file : files) moved |= file.poll();
    const Time now = node_now();
    if (moved || pending(files) == 0) due = now;
    if (moved || step.moved) {
      last = now;
      how.moved();
    } else if (now - due >= silence_bound) {
      lose_pending(files, "nothing came from it for 30 s");
    } else {
      std::vector<pollfd> connections = connections_of(files);
      how.pause(connections, now - last, silence_bound - (now - due), step.awaits_messages);
    }
  }
}

void await_answers(std::span<ServedFile> files, WaitStrategy&& how) {
  wait(files, std::move(how), [&] { return StepResult{.done = pending(files) == 0}; });
}

}  // namespace hocket::io_client
