#include "policy/contenders.hpp"

#include <algorithm>

namespace hocket::policy {

Contenders contenders(const View& view) {
  Contenders all;
  const auto is_in = [](const std::vector<Contender>& list, AppId id) {
    return std::any_of(list.begin(), list.end(), [id](const Contender& one) { return one.application->id == id; });
  };
  for (const model::Holder& holder : view.holders()) {
    all.holders.push_back({holder.application, nullptr, false});
    all.pausing |= holder.pausing;
  }
  for (const model::Request& request : view.waiting()) {
    if (is_in(all.holders, request.application) || is_in(all.waiting, request.application)) continue;
    const bool overdue = view.now - request.since >= view.settings.longest_wait;
    all.waiting.push_back({request.of, &request, overdue});
  }
  return all;
}

bool may_be_interrupted(const View& view, const model::Application& application) {
  return application.demand.interruptions < view.settings.most_interruptions;
}

}  // namespace hocket::policy
