// Test support for the access policies: a target, and what a policy decides about it. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace hocket::policy::testing {

// Returns the names of the policies, joined by ", ".
template <class Records>
std::string names_of(const Records& records) {
  std::string names;
  for (const auto* one : records) names.append(names.empty() ? "" : ", ").append(one->name);
  return names;
}

// A target with applications that hold it or wait for it. Times are seconds since an arbitrary start.
class OneTarget : public ::testing::Test {
 protected:
  // Adds an application whose phase takes `alone_s` alone and began at `since_s`.
  model::Application& add(std::int64_t processes, double alone_s, double since_s) {
    const MemberId member{++members_};
    const event::Hello hello{{}, "app", "/bin/app", "mpich", {}, 0, processes};
    model::Application& application = *cluster.join({"node", {}, member}, hello, at(0)).application;
    application.io.phase_s = alone_s;
    application.demand.since = at(since_s);
    return application;
  }
  model::Application& holds(std::int64_t processes, double alone_s, double since_s, double served_s) {
    model::Application& application = add(processes, alone_s, since_s);
    application.demand.granted = true;
    application.demand.served_s = served_s;
    target.holders.push_back({&application, &target, 1, {}});
    return application;
  }
  model::Application& waits(std::int64_t processes, double alone_s, double since_s) {
    model::Application& application = add(processes, alone_s, since_s);
    model::Request request;
    request.id = RequestId{1};
    request.member = MemberId{members_};
    request.application = application.id;
    request.of = &application;
    request.target = &target;
    request.since = at(since_s);
    target.waiting.push_back(request);
    return application;
  }

  static Time at(double s) { return time_from_ns(1'000'000'000) + from_s(s); }
  AccessDecision decide(const Policy& policy, double now_s) {
    return policy.decide({cluster, target, at(now_s), settings}, {});
  }
  static std::optional<double> cost(const AccessDecision& decision, std::string_view action) {
    for (const Cost& one : decision.costs) {
      if (one.action == action) return one.value;
    }
    return std::nullopt;
  }
  std::vector<AppId> granted(const AccessDecision& decision) const {
    std::vector<AppId> apps;
    for (const Grant& grant : decision.grants) apps.push_back(cluster.find(grant.member)->application->id);
    return apps;
  }
  void metric(const char* text) { settings.metric = Metric::parse(text).value(); }

  model::Cluster cluster;
  model::Target target;
  AccessSettings settings;

 private:
  std::uint64_t members_ = 0;
};

}  // namespace hocket::policy::testing
