// Replaces the coordinator by a list of choices about which applications use the targets; a rule takes over where the
// list ends. The clairvoyant sees the applications themselves, and not only their messages.
//
// A choice is due when something changes about a target for which an application waits. Its options are numbered. The
// first ones are all sets of waiting applications that could be granted, the empty set among them. Then follow all
// non-empty sets of holders that could be stopped in the middle of an operation. Accesses that the page cache serves
// are granted without a choice.
//
// Deterministic: the same choices give the same run. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/application.hpp"
#include "sim/controller.hpp"

namespace hocket::sim {

// Says how to continue after the list: which application is next, and if the target idles for the rest of a phase.
struct Rule {
  enum class NextChoice {
    everybody,        // all are granted at once
    those_with_room,  // several at once, as far as the target can serve them without loss
    first_come,
    shortest,            // the least time left in its phase
    shortest_interrupts  // the same, and it stops holders that have more left
  };
  NextChoice next = NextChoice::first_come;
  bool holds = false;  // idle hold: the target waits while its last holder computes between two operations of a phase
};

// Option numbers, in the order in which the choices are due.
using Choices = std::vector<std::uint16_t>;

// A Controller for simulations of at most 32 applications: sets of them are bit masks.
class Clairvoyant : public Controller {
 public:
  // The choices that were made, and the number of options that each had.
  struct Made {
    Choices choices;
    std::vector<std::uint16_t> options;
  };
  // All references must outlive the object; `made` is appended to during the run.
  Clairvoyant(const Scenario& scenario, const Choices& choices, Rule rule, Made& made);

  void watch(std::span<const SimulatedApplication> applications) override { applications_ = applications; }
  const std::vector<coordinator::Command>& send(Time now, const MemberIdentity& from, event::Body body) override;

 private:
  using Mask = std::uint32_t;  // a set of applications; bit i is application i
  // The present request of an application.
  struct ApplicationRequest {
    RequestId id;
    std::size_t target = 0;
    bool cached = false;
    std::int64_t arrival = 0;  // position in the order of arrival
  };

  // Takes a request in. A cached access is granted at once; others wait.
  void start(std::size_t i, const event::StartIo& asked);
  // Makes the choice that is due at the target, from the list or by the rule, and carries it out.
  void decide(std::size_t target);
  void carry_out(Mask grants, Mask stops);
  // Returns which waiting applications the rule grants, or sets `stops` to the holders that it stops.
  Mask by_rule(std::size_t target, Mask& stops) const;
  // Returns the seconds that are left of the application's phase at its full rate.
  double left_s(std::size_t i) const;
  bool can_stop(std::size_t i) const;
  // Returns the applications of the set whose request is for this target and not cached.
  Mask on(std::size_t target, Mask of) const;
  // Returns the first application of a non-empty set: by time left, or by arrival.
  std::size_t least(Mask of, bool by_size) const;

  const Scenario& scenario_;
  const Choices& list_;
  Rule rule_;
  Made& made_;
  std::span<const SimulatedApplication> applications_;
  std::vector<ApplicationRequest> requests_;  // request of each application
  std::vector<int> last_;                     // last holder of each target; -1: none
  Mask waiting_ = 0;
  Mask holding_ = 0;
  Mask stopping_ = 0;  // holders that have a PAUSE_IO to obey
  Mask ended_ = 0;
  std::int64_t arrivals_ = 0;
  std::vector<coordinator::Command> commands_;
};

}  // namespace hocket::sim
