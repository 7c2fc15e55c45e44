// Contenders are the applications that want a target: its holders and those that wait, each listed once, however many
// requests it has. Policies that decide by application instead of by request use them. Pure.
#pragma once

#include <vector>

#include "policy/policy.hpp"

namespace hocket::policy {

// One application that wants the target. The pointers are valid as long as the View.
struct Contender {
  const model::Application* application = nullptr;
  const model::Request* request = nullptr;  // its first waiting request; nullptr: it holds the target
  bool overdue = false;                     // the request has waited for `longest_wait`: no other may overtake it
};

struct Contenders {
  std::vector<Contender> holders;
  std::vector<Contender> waiting;  // in order of arrival, without applications that are among the holders
  bool pausing = false;            // a holder was told to pause and has not stopped yet
};
Contenders contenders(const View& view);

// True if the application was preempted less often in this I/O phase than the settings allow.
bool may_be_interrupted(const View& view, const model::Application& application);

inline Grant grant_of(const Contender& waiting) { return {waiting.request->member, waiting.request->id}; }

}  // namespace hocket::policy
