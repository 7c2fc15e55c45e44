// The identity of a node is its kernel and its namespaces. Host names are no identity: two nodes may have the same one.
#pragma once

#include <string>

namespace hocket::daemon {

// Returns 16 hexadecimal digits, made of the boot id and the PID, UTS and network namespaces of this process.
std::string node_identity();

}  // namespace hocket::daemon
