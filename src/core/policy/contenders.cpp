#include "policy/contenders.hpp"

#include <algorithm>

namespace hocket::policy {

Contenders contenders(const View& view) {
  Contenders all;
  const auto find_in = [](std::vector<Contender>& list, AppId id) {
    return std::find_if(list.begin(), list.end(), [id](const Contender& one) { return one.application->id == id; });
  };
  for (const model::Holder& holder : view.holders()) {
    all.holders.push_back({holder.application, nullptr, false});
    all.pausing |= holder.pausing;
  }
  for (const model::Request& request : view.waiting()) {
    if (find_in(all.holders, request.application) != all.holders.end()) continue;
    const bool overdue = view.now - request.since >= view.settings.longest_wait;
    // An access of the program says more of the application than what its I/O servers store.
    if (const auto known = find_in(all.waiting, request.application); known != all.waiting.end()) {
      if (known->request->write_back && !request.write_back) known->request = &request;
      continue;
    }
    all.waiting.push_back({request.of, &request, overdue});
  }
  return all;
}

bool may_be_interrupted(const View& view, const model::Application& application) {
  return application.demand.interruptions < view.settings.most_interruptions;
}

}  // namespace hocket::policy
