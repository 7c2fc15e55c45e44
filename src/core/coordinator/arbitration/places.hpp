// Lookups in the lists of the model: requests of a member, and holder entries of an application. Each scans the few
// entries of that member or application. Pure.
#pragma once

#include <optional>

#include "model/application.hpp"

namespace hocket::coordinator {

// Returns the member's request with that number, queued or granted.
inline std::optional<model::Requests::iterator> find(const model::Member& member, RequestId id) {
  for (const auto request : member.requests) {
    if (request->id == id && !request->delegation) return request;
  }
  return std::nullopt;
}

// Returns the member's delegation that the GRANT_IO of the request with that number brought.
inline std::optional<model::Requests::iterator> find_delegation(const model::Member& member, RequestId id) {
  for (const auto request : member.requests) {
    if (request->id == id && request->delegation) return request;
  }
  return std::nullopt;
}

// Returns the application's entry among the holders of the target: it does I/O there, or keeps the target idle.
inline std::optional<model::Holders::iterator> find_holder(const model::Application& application,
                                                           const model::Target& target) {
  for (const auto holder : application.held) {
    if (holder->target == &target) return holder;
  }
  return std::nullopt;
}

// True if the holder may have the request's parts of the target beside its own: no other application holds one that the
// holder does not hold itself.
inline bool extends(const model::Holder& holder, const model::Request& request) {
  if (holder.parts.covers(request.parts)) return true;
  for (const model::Holder& other : holder.target->holders) {
    if (&other != &holder && request.parts.meets_beyond(holder.parts, other.parts)) return false;
  }
  return true;
}

// True if a member of the application has a request on the target, queued or granted.
inline bool wants(const model::Application& application, const model::Target& target) {
  for (const model::Member* member : application.members) {
    for (const auto request : member->requests) {
      if (request->target == &target && !request->delegation) return true;
    }
  }
  return false;
}

// Calls `visit(member, request)` for each request of the application on the target in that state. `visit` may change
// the state, but must not add or remove requests.
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
