// What a policy in Python returns, as decisions.
#pragma once

#include "base/result.hpp"
#include "policy/core_policy.hpp"
#include "policy/policy.hpp"
#include "pypolicy/module/python.hpp"

namespace hocket::pypolicy {

// A list (or tuple) of dicts, or None for no command. The error says which command is wrong and how.
Result<policy::CoreDecision> core_decision(PyObject* commands, const policy::CoreView& view);
Result<policy::Decision> access_decision(PyObject* commands, const policy::View& view);

}  // namespace hocket::pypolicy
