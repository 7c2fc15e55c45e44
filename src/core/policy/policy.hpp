// An access policy decides which applications may use a target now. It is a function without state of its own: it
// reads the view, and everything that it can do is in the AccessDecision that it returns. Pure: no I/O, clock or
// randomness.
//
// To add a policy, write a file with a `decide` function and one `Policy` record. Then declare the record below and add
// it to the list in policy.cpp.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"
#include "model/cluster.hpp"
#include "policy/metric.hpp"

namespace hocket::policy {

// Settings of the access policies, from hocket.toml.
struct AccessSettings {
  Metric metric;  // minimised by `cost` and `dynamic`
  // Most preemptions of one application within one I/O phase.
  std::int64_t most_interruptions = 3;
  // A request that has waited this long is not overtaken any more (CoordinatorSettings::turn).
  Duration longest_wait = std::chrono::seconds{60};
  // Assumed slowdown of each of two applications that use a target at once, until it is measured. At least 1.
  double interference = 2;
  // Share of its time by which an application may become slower than without coordination; 0: no bound.
  double most_slowdown = 0;
};

// The elements of a list of holders or requests that meet some parts, in order. Refers to both. (clang 14 does not
// understand the filter of the standard library.)
template <class T>
class MeetingParts {
 public:
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = const T&;
    using pointer = const T*;
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;
    iterator(const MeetingParts* range, typename std::list<T>::const_iterator at) : range_(range), at_(at) { skip(); }

    reference operator*() const { return *at_; }
    pointer operator->() const { return &*at_; }
    iterator& operator++() {
      ++at_;
      skip();
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const iterator& other) const { return at_ == other.at_; }

   private:
    void skip() {
      while (at_ != range_->all_.end() && !at_->parts.meets(range_->parts_)) ++at_;
    }
    const MeetingParts* range_ = nullptr;
    typename std::list<T>::const_iterator at_{};
  };

  MeetingParts(const std::list<T>& all, const model::PartSet& parts) : all_(all), parts_(parts) {}

  iterator begin() const { return {this, all_.begin()}; }
  iterator end() const { return {this, all_.end()}; }
  bool empty() const { return begin() == end(); }
  // Precondition: not empty().
  const T& front() const { return *begin(); }

 private:
  const std::list<T>& all_;
  const model::PartSet& parts_;
};

// The read-only state from which a policy decides about one target, or about parts of it that requests ask for. Its
// references are valid during the call only.
struct View {
  const model::Cluster& cluster;
  const model::Target& target;  // with all its holders and waiting requests
  Time now;
  const AccessSettings& settings;
  model::PartSet parts{};  // that the decision is about

  // The holders and the waiting requests that a policy has to consider, those that meet `parts`; in order of arrival.
  MeetingParts<model::Holder> holders() const { return {target.holders, parts}; }
  MeetingParts<model::Request> waiting() const { return {target.waiting, parts}; }
};

// A waiting request of the target that the coordinator is to grant now.
struct Grant {
  MemberId member;
  RequestId request;
};

// A bandwidth share: the application uses at most this part of the target's bandwidth while others hold it too.
struct BandwidthShare {
  AppId application;
  double part = 1;
};

// Explains to people what was decided about one application, and because of which other one.
struct Choice {
  AppId application;
  AppId because_of;
  std::string_view action;  // "interrupt", "wait", "interfere", "delay"
};

// The value that the metric would have under one action; shown to people. The action is a field of event::AccessChoice.
struct Cost {
  std::string_view action;
  double value = 0;
};

// Everything that a policy wants done about one target after one event.
struct AccessDecision {
  std::vector<Grant> grants{};
  // Holders to preempt in the middle of an access. Each keeps the target until it has stopped.
  std::vector<AppId> interruptions{};
  // Bandwidth shares of applications that hold the target after this decision, those granted by it included. An
  // application without an entry may use all of the bandwidth.
  std::vector<BandwidthShare> shares{};
  // Time at which the policy is asked again if nothing else happens before; 0: none.
  Time again{};
  std::vector<Choice> choices{};
  std::vector<Cost> costs{};
};

// The coordinator calls this after each event that changed a target for which a request waits (or, with
// `Policy::shares`, that has a holder). `event` is that event. The coordinator itself does what all policies share:
//   - A holder continues without a decision until its time slice is over, it stops, or it is preempted.
//   - A holder whose lease or idle hold has ended is no longer in the view.
//   - A holder that is to pause keeps the target until it has paused. Until then it is granted nothing there.
//   - If requests ask for parts of the target, it calls this for each set of parts, and carries out what concerns
//     requests and holders of just these parts (coordinator/arbitration/parts.hpp).
using Decide = AccessDecision (*)(const View& view, const event::Event& event);

struct Policy {
  std::string_view name;
  std::string_view summary;  // one line, for people
  Decide decide;
  bool shares = false;  // it returns bandwidth shares, so it is also asked while no request waits
  // Values under this policy for `most_slowdown` and `learnt_hold` of CoordinatorSettings. A most_slowdown
  // in hocket.toml wins; learnt_hold applies if either sets it.
  double most_slowdown = 0;
  bool learnt_hold = false;
};

// The built-in policies. Each is defined in the file of its name.
extern const Policy cost;
extern const Policy interfere;
extern const Policy fcfs;
extern const Policy interrupt;
extern const Policy dynamic;
extern const Policy set_10;

// Returns all built-in access policies, in the order in which tools list them.
std::span<const Policy* const> policies();

// Returns the policy of that name. The error names the nearest known name and lists all.
Result<const Policy*> find_policy(std::string_view name);

}  // namespace hocket::policy
