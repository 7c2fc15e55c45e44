// In the place of a coordinator: carries out a list of choices about who uses the targets, and goes on by a rule where
// the list ends. It sees the applications themselves, not only what they tell.
//
// A choice is due when something about a target has changed for which somebody waits. Its options are numbered: first
// all sets of those who wait that could be granted, the empty one among them, then all sets of holders that could be
// stopped in the middle. What the page cache serves is granted without a choice.
//
// Deterministic: the same choices lead to the same run. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/application.hpp"
#include "sim/controller.hpp"

namespace hocket::sim {

// How it goes on after its list: who is next, and whether the target is held idle for the rest of a phase.
struct Rule {
  enum class Next {
    everybody,        // nobody waits
    those_with_room,  // beside each other as far as the target can serve them without loss
    first_come,
    shortest,            // by what is left of the phase
    shortest_interrupts  // stops holders for it
  };
  Next next = Next::first_come;
  bool holds = false;  // while the last holder computes between two operations of a phase
};

using Choices = std::vector<std::uint16_t>;

class Clairvoyant : public Controller {
 public:
  // What was chosen, and among how many.
  struct Made {
    Choices choices;
    std::vector<std::uint16_t> options;
  };
  // All must outlive it.
  Clairvoyant(const Scenario& scenario, const Choices& choices, Rule rule, Made& made);

  void watch(std::span<const Application> applications) override { applications_ = applications; }
  const std::vector<coordinator::Command>& send(Time now, const Member& from, event::Body body) override;

 private:
  using Mask = std::uint32_t;  // of applications
  struct Request {
    RequestId id;
    std::size_t target = 0;
    bool cached = false;
    std::int64_t arrival = 0;  // in order
  };

  void start(std::size_t i, const event::StartIo& asked);
  void decide(std::size_t target);
  void carry_out(Mask grants, Mask stops);
  Mask by_rule(std::size_t target, Mask& stops) const;
  double left_s(std::size_t i) const;
  bool can_stop(std::size_t i) const;
  Mask on(std::size_t target, Mask of) const;
  std::size_t least(Mask of, bool by_size) const;

  const Scenario& scenario_;
  const Choices& list_;
  Rule rule_;
  Made& made_;
  std::span<const Application> applications_;
  std::vector<Request> requests_;  // of each application, its present one
  std::vector<int> last_;          // by target: its last holder; -1: none
  Mask waiting_ = 0;
  Mask holding_ = 0;
  Mask stopping_ = 0;  // of those who hold
  Mask ended_ = 0;
  std::int64_t arrivals_ = 0;
  std::vector<coordinator::Command> commands_;
};

}  // namespace hocket::sim
