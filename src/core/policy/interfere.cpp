// Interfere grants every request at once. So hocket observes what happens without coordination.
#include "policy/policy.hpp"

namespace hocket::policy {
namespace {

AccessDecision decide(const View& view, const event::Event&) {
  AccessDecision all;
  for (const model::Request& request : view.waiting()) all.grants.push_back({request.member, request.id});
  return all;
}

}  // namespace

constexpr Policy interfere{"interfere", "no application waits", decide};

}  // namespace hocket::policy
