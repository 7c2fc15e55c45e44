// Where the requests of a member and the entries of an application among the holders are.
#pragma once

#include <optional>

#include "model/application.hpp"

namespace hocket::coordinator {

inline std::optional<model::Requests::iterator> find(const model::Member& member, RequestId id) {
  for (const auto request : member.requests) {
    if (request->id == id) return request;
  }
  return std::nullopt;
}

inline std::optional<model::Holders::iterator> find_holder(const model::Application& application,
                                                           const model::Target& target) {
  for (const auto holder : application.held) {
    if (holder->target == &target) return holder;
  }
  return std::nullopt;
}

// Whether it has or asks for anything on the target.
inline bool wants(const model::Application& application, const model::Target& target) {
  for (const model::Member* member : application.members) {
    for (const auto request : member->requests) {
      if (request->target == &target) return true;
    }
  }
  return false;
}

// `visit(member, request)` for each request of the application at the target that is in that state.
template <class Visit>
void each_request(const model::Application& application, const model::Target& target, model::RequestState state,
                  Visit visit) {
  for (const model::Member* member : application.members) {
    for (const auto request : member->requests) {
      if (request->target == &target && request->state == state) visit(*member, request);
    }
  }
}

}  // namespace hocket::coordinator
