// The rules for requests that use parts of a target (model/part_set.hpp). Requests whose parts do not meet never wait
// for each other, so one target may have several contests at once. A contest is about the parts of one request, or of
// several with the same parts; a policy sees all that meet them (policy::View).
//
// A policy's decision about a contest holds only for what has just these parts. Only there it has seen all that is
// concerned: another request in the view may meet holders that this view lacks. Pure.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "model/application.hpp"
#include "policy/policy.hpp"

namespace hocket::coordinator {

// Returns the set of parts with these names (event/part_names.hpp), and numbers new ones; "": the whole target. An
// error says what is wrong.
Result<model::PartSet> parts_named(model::Target& target, std::string_view names);

// Returns the parts, with those that the application holds of the target.
model::PartSet parts_with(const model::Application& application, const model::Target& target, model::PartSet parts);

// Returns the parts, with those of all waiting requests that meet them, or meet such requests, and so on. A request may
// wait for each holder that meets the result.
model::PartSet reach_of(const model::Target& target, const model::PartSet& parts);

// Leaves what the decision about a contest says about requests and holders of just its parts. Returns true if it grants
// other requests only.
bool keep_own(policy::AccessDecision& decision, const policy::View& view);

}  // namespace hocket::coordinator
