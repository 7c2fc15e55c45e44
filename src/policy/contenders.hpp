// Who wants a target: the applications that have it and those that wait, each once, however many requests it has.
//
// For policies that know of interruption. Pure.
#pragma once

#include <vector>

#include "policy/policy.hpp"

namespace hocket::policy {

struct Contender {
  const model::Application* application = nullptr;
  const model::Request* request = nullptr;  // its first one that waits; nullptr: it has the target
  bool overdue = false;                     // it has waited so long that nobody overtakes it any more
};

struct Contenders {
  std::vector<Contender> holders;
  std::vector<Contender> waiting;  // in order of arrival; without those that have the target and are about to pause
  bool pausing = false;            // a holder is about to pause
};
Contenders contenders(const View& view);

// Whether it was not interrupted as often already as the settings allow in one I/O phase.
bool may_be_interrupted(const View& view, const model::Application& application);

inline Grant grant_of(const Contender& waiting) { return {waiting.request->member, waiting.request->id}; }

}  // namespace hocket::policy
