// Lists the fields of each event, once for all of hocket. `fields(event, visit)` calls `visit(key, member)` for each
// field, in order, for const and mutable events alike. The wire, the trace, filters and tools are built on it. Pure.
//
// A key is the field's name in all of these. Keys of times and durations, which are int64 nanoseconds there, end in
// `_ns`; keys of sizes end in `_bytes` or say `bytes`. Members are of type std::string, Prose, std::int64_t, bool,
// double, Duration, Time, an Id, Reason, or (USER only) Properties.
//
// Every event also carries its type and origin under the keys "type", "time_ns", "node", "application" and "member"
// (event/properties.hpp). A key here must differ from these, which is why some keys differ from the member's name.
// Append new fields at the end of a list. A key must never change, because it is part of the wire and trace formats.
#pragma once

#include "event/command_fields.hpp"
#include "event/daemon_fields.hpp"
#include "event/event.hpp"
#include "event/member_fields.hpp"
#include "event/tool_fields.hpp"
