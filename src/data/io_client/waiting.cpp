#include "io_client/waiting.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/clock.hpp"
#include "io_client/silence.hpp"

namespace hocket::io_client {
namespace {

// If this process itself did not run for so long, it has not seen what came meanwhile.
constexpr Duration standstill = std::chrono::seconds{5};
constexpr Duration longest_pause = std::chrono::seconds{1};

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

// A server that fails has the others cancel what they are still asked for, so its own error says more.
int take_error(std::span<ServedFile> files) {
  int told = 0;
  for (ServedFile& file : files) {
    const int error = file.take_error();
    if (told == 0 || (told == ECANCELED && error != 0)) told = error;
  }
  return told;
}

void wait(std::span<ServedFile> files, WaitStrategy&& how, FunctionRef<StepResult()> go_on) {
  const NothingPending at_the_end{files};
  Time last = node_now();  // when something moved
  Time looked = last;
  std::vector<Silence> silences(files.size(), {last, last});
  for (StepResult step = go_on(); !step.done; step = go_on()) {
    bool moved = false;
    Duration left = longest_pause;
    const bool stood_still = node_now() - looked > standstill;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const bool its_moved = files[i].poll();
      moved |= its_moved;
      looked = node_now();
      silences[i].note(its_moved || stood_still || files[i].pending() == 0, files[i].take_sign_of_life(), looked);
      if (looked >= silences[i].ends()) {
        files[i].lose(silences[i].reason(looked));
        moved = true;
      } else if (files[i].pending() > 0) {
        left = std::min(left, silences[i].ends() - looked);
      }
    }
    if (moved || step.moved) {
      last = looked;
      how.moved();
    } else {
      std::vector<pollfd> connections = connections_of(files);
      how.pause(connections, looked - last, left, step.awaits_messages);
    }
  }
}

void await_answers(std::span<ServedFile> files, WaitStrategy&& how) {
  wait(files, std::move(how), [&] { return StepResult{.done = pending(files) == 0}; });
}

}  // namespace hocket::io_client
