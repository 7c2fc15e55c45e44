// Waits for I/O servers in a rank: in short sleeps, and MPI makes progress in between, because another rank may reach
// its part only after a receive from this one.
#pragma once

#include "io_client/waiting.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime::collective {

class MpiWait final : public io_client::WaitStrategy {
 public:
  explicit MpiWait(MPI_Comm comm) : comm_(comm) {}

  void moved() override { patience_ = mpi::Patience(); }
  void pause(std::span<pollfd> connections, Duration idle, Duration, bool awaits_messages) override {
    // Milliseconds between two calls into MPI, at first and in a long wait.
    constexpr int look_ms = 1, long_look_ms = 10;
    constexpr Duration long_wait = from_s(0.1);
    if (awaits_messages)
      patience_.pause();
    else
      ::poll(connections.data(), connections.size(), idle > long_wait ? long_look_ms : look_ms);
    mpi::push(comm_);
  }

 private:
  MPI_Comm comm_;
  mpi::Patience patience_;
};

}  // namespace hocket::runtime::collective
