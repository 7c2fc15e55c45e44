// Waits for I/O servers in the deputy's thread.
#pragma once

#include <algorithm>

#include "io_client/waiting.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime::collective {

// Waits as a process without MPI does, and shows that the thread is alive: it may be the deputy.
class BeatingWait final : public io_client::WaitStrategy {
 public:
  void pause(std::span<pollfd> connections, Duration idle, Duration left, bool awaits_messages) override {
    beat();
    io_client::DescriptorWait().pause(connections, idle, std::min(left, between_beats), awaits_messages);
  }
};

}  // namespace hocket::runtime::collective
