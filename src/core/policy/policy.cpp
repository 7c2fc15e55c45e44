#include "policy/policy.hpp"

#include <string>

#include "base/nearest.hpp"

namespace hocket::policy {

namespace {
// The order in which tools list them: the default first.
constexpr const Policy* known[] = {&cost, &interfere, &fcfs, &interrupt, &dynamic, &set_10};
}  // namespace

std::span<const Policy* const> policies() { return known; }

Result<const Policy*> find_policy(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Policy* policy : known) {
    if (policy->name == name) return policy;
    names.push_back(policy->name);
  }
  std::string all;
  for (const std::string_view one : names) all.append(all.empty() ? "" : ", ").append(one);
  return Error{"unknown policy '" + std::string{name} + "': did you mean '" + std::string{nearest(name, names)} +
               "'? there are: " + all};
}

}  // namespace hocket::policy
