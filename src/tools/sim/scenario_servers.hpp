// Reads the [[servers]] and [[load]] tables of a scenario: I/O servers, and the load that is injected into them.
#pragma once

#include <string>
#include <vector>

#include "sim/fields.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

// Returns the position of the target that the key `target` names, and sets `name`; the default is the first target. An
// unknown name is a problem.
std::size_t read_target_of(TableFields& fields, const std::vector<TargetSpec>& targets, std::string& name);

// Reads one [[servers]] table, which is `count` equal servers, and adds them to their target.
void read_servers(Problem& problem, const toml::table& table, std::vector<TargetSpec>& targets);

// Reads one [[load]] table and adds it to its server. All servers must have been read.
void read_load(Problem& problem, const toml::table& table, std::vector<TargetSpec>& targets);

// Reports a problem if the application writes through servers, and none of its targets has any, or its target shares in
// a way in which writers have no rate of their own.
void check_requests(TableFields& fields, const ApplicationSpec& application, const std::vector<TargetSpec>& targets);

// Reads what an application has if it forwards its I/O: the nodes that it occupies, and its bandwidth by number of I/O
// servers.
void read_forwarding(TableFields& fields, const toml::table& table, const Scenario& scenario, ApplicationSpec& spec);

}  // namespace hocket::sim
