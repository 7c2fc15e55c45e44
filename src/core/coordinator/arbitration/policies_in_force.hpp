// PoliciesInForce says which access policy decides about which request: the daemon's, unless the operator set another
// one for the target, or a user switched it for an application.
//
//   the target's, unless applications may switch there  >  the application's  >  the target's  >  the daemon's
//
// A part of AccessController. The policies outlive it. Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "coordinator/command.hpp"
#include "model/target.hpp"
#include "policy/policy.hpp"

namespace hocket::coordinator {

class PoliciesInForce {
 public:
  // Bounds of what a listing shows, so that it fits into one frame.
  static constexpr std::size_t most_targets = 64;
  static constexpr std::size_t longest_target = 256;  // bytes of its name

  explicit PoliciesInForce(const policy::Policy& general, std::map<std::string, TargetPolicy> targets = {})
      : general_(&general), targets_(std::move(targets)) {}

  void set(const policy::Policy& general) { general_ = &general; }
  void set_target(const std::string& target, TargetPolicy set) { targets_[target] = set; }
  void unset_target(const std::string& target) { targets_.erase(target); }
  void set_application(AppId app, const policy::Policy& policy) { applications_[app] = &policy; }
  // Forgets the application's switch, also when it ends.
  void unset_application(AppId app) { applications_.erase(app); }

  const policy::Policy& general() const { return *general_; }
  const std::map<std::string, TargetPolicy>& targets() const { return targets_; }
  // True if the operator set a policy for the target that no application may leave.
  bool holds(const std::string& target) const {
    const auto set = targets_.find(target);
    return set != targets_.end() && !set->second.allows;
  }
  // Returns the names of such targets, one a line.
  std::string held() const {
    std::string names;
    for (const auto& [target, set] : targets_) {
      if (!set.allows) names.append(names.empty() ? "" : "\n").append(target);
    }
    return names;
  }
  // True if a request for `named` is for the file system on which its file lies: the operator set the latter's policy,
  // and the name, which the application chose, would leave it.
  bool overrules(const std::string& named, const std::string& file_system) const {
    return named != file_system && holds(file_system) && !holds(named);
  }
  // True if the daemon's policy decides everything.
  bool are_all_alike() const { return targets_.empty() && applications_.empty(); }

  // Returns the policy that decides about the application's requests for the target.
  const policy::Policy& of(AppId app, const std::string& target) const {
    if (are_all_alike()) return *general_;
    const auto set = targets_.find(target);
    if (holds(target)) return *set->second.policy;
    if (const auto own = applications_.find(app); own != applications_.end()) return *own->second;
    return set != targets_.end() ? *set->second.policy : *general_;
  }

  // Returns the policies of all applications that hold the target or wait for it, each once, the holders' first.
  std::vector<const policy::Policy*> at(const model::Target& target) const {
    if (are_all_alike()) return {general_};
    std::vector<const policy::Policy*> found;
    const auto add = [&](AppId app) {
      const policy::Policy* policy = &of(app, target.name);
      if (std::find(found.begin(), found.end(), policy) == found.end()) found.push_back(policy);
    };
    for (const model::Holder& holder : target.holders) add(holder.application->id);
    for (const model::Request& request : target.waiting) add(request.application);
    return found;
  }

 private:
  const policy::Policy* general_;
  std::map<std::string, TargetPolicy> targets_;
  std::map<AppId, const policy::Policy*> applications_;
};

}  // namespace hocket::coordinator
