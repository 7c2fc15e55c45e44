// FCFS grants a target to one application at a time, in order of arrival (CLARISSE, section IV-B).
#include "policy/policy.hpp"

namespace hocket::policy {
namespace {

AccessDecision decide(const View& view, const event::Event&) {
  if (!view.holders().empty()) return {};
  const model::Request& first = view.waiting().front();
  return {.grants = {{first.member, first.id}}};
}

}  // namespace

constexpr Policy fcfs{"fcfs", "one application at a time, first come, first served", decide};

}  // namespace hocket::policy
