// Converts the commands that a policy in Python returns to decisions, and checks them. The commands come from the
// user's file, so each key and value is checked.
#pragma once

#include "base/result.hpp"
#include "policy/core_policy.hpp"
#include "policy/policy.hpp"
#include "policy/server_policy.hpp"
#include "pypolicy/module/python.hpp"

namespace hocket::pypolicy {

// Return the decision of a list (or tuple) of dicts; None means no command. The error says which command is wrong,
// and why. The applications and requests must be those of `view`.
Result<policy::CoreDecision> core_decision(PyObject* commands, const policy::CoreView& view);
Result<policy::AccessDecision> access_decision(PyObject* commands, const policy::View& view);
// Servers may have any name: the coordinator ignores a server that has gone since.
Result<policy::ServerDecision> server_decision(PyObject* commands, const policy::ServersView& view);

}  // namespace hocket::pypolicy
