// The fields of events between tools and hocketd (event/fields.hpp). Pure.
#pragma once

#include "event/of.hpp"
#include "event/tool_events.hpp"

namespace hocket::event {

template <Of<Subscribe> E, class V>
void fields(E& e, V&& visit) {
  visit("subscription", e.subscription);
  visit("filter", e.filter);
}

template <Of<Unsubscribe> E, class V>
void fields(E& e, V&& visit) {
  visit("subscription", e.subscription);
}

// LIST has no fields: it always asks for everything.
template <Of<List> E, class V>
void fields(E&, V&&) {}

template <Of<Explain> E, class V>
void fields(E& e, V&& visit) {
  visit("count", e.count);
  visit("application_asked", e.application);
}

// The key "application" is the one exception: it hides that of the origin, and names the described application.
template <Of<Application> E, class V>
void fields(E& e, V&& visit) {
  visit("app", e.app);
  visit("application", e.application);
  visit("job", e.job);
  visit("program", e.program);
  visit("mpi", e.mpi);
  visit("on_node", e.node);
  visit("pid", e.pid);
  visit("processes", e.processes);
  visit("state", e.state);
  visit("since_ns", e.since);
  visit("target", e.target);
  visit("phases", e.phases);
  visit("period_ns", e.period);
  visit("period_spread_ns", e.period_spread);
  visit("duration_ns", e.duration);
  visit("duration_spread_ns", e.duration_spread);
  visit("io_ratio", e.io_ratio);
  visit("io_ns", e.io);
  visit("wait_ns", e.wait);
  visit("cpu_ns", e.cpu);
  visit("comm_ns", e.comm);
  visit("bytes_read", e.bytes_read);
  visit("bytes_written", e.bytes_written);
  visit("last_io_start_ns", e.last_io_start);
  visit("last_io_end_ns", e.last_io_end);
  visit("next_start_ns", e.next_start);
  visit("next_uncertainty_ns", e.next_uncertainty);
  visit("malleable", e.malleable);
  visit("sleeping", e.sleeping);
  visit("resizing_to", e.resizing_to);
  visit("reconfigurations", e.reconfigurations);
  visit("flop_per_iteration", e.flop_per_iteration);
  visit("flop_source", e.flop_source);
  visit("map_epoch", e.map_epoch);
  visit("cpu_most_ns", e.cpu_most);
  visit("comm_most_ns", e.comm_most);
  visit("model", e.model);
  visit("phases_in_period", e.phases_in_period);
  visit("told_processes", e.told_processes);
  visit("policy", e.policy);
  visit("parts", e.parts);
  visit("servers", e.servers);
  visit("assigned_servers", e.assigned_servers);
  visit("forwards", e.forwards);
  visit("given_servers", e.given_servers);
  visit("expected_bytes_per_s", e.expected_bytes_per_s);
  visit("weight", e.weight);
  visit("weight_by", e.weight_by);
  visit("nodes", e.nodes);
  visit("delegated_targets", e.delegated);
  visit("user", e.user);
  visit("slurm_step", e.slurm_step);
}

template <Of<IoServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("state", e.state);
  visit("since_ns", e.since);
  visit("epoch", e.epoch);
  visit("directory", e.directory);
  visit("addresses", e.addresses);
  visit("pid", e.pid);
  visit("buffer_bytes", e.buffer_bytes);
  visit("write_behind", e.write_behind);
  visit("operations", e.operations);
  visit("bytes", e.bytes);
  visit("service_ns", e.service);
  visit("queue", e.queue);
  visit("held_bytes", e.held_bytes);
  visit("operations_per_s", e.operations_per_s);
  visit("bytes_per_s", e.bytes_per_s);
  visit("busy_ns", e.busy);
  visit("last_service_ns", e.last_service);
  visit("in_map", e.in_map);
  visit("back_ns", e.back);
  visit("moves_data_sets", e.moves_data_sets);
  visit("data_sets_left", e.data_sets_left);
  visit("data_set_bytes_left", e.data_set_bytes_left);
  visit("data_sets_text", e.data_sets_text);
  visit("weight", e.weight);
  visit("scheduler", e.scheduler);
  visit("forwarded", e.forwarded);
  visit("forwarded_bytes", e.forwarded_bytes);
  visit("system_calls", e.system_calls);
  visit("merged", e.merged);
  visit("forward_waited_ns", e.forward_waited);
  visit("forward_queue", e.forward_queue);
  visit("forward_shares", e.forward_shares);
  visit("forward_weights", e.forward_weights);
  visit("scheduler_by", e.scheduler_by);
  visit("on_node", e.node);
  visit("instance", e.instance);
}

template <Of<Node> E, class V>
void fields(E& e, V&& visit) {
  visit("on_node", e.node);
  visit("cores", e.cores);
  visit("taken", e.taken);
}

// The key "node" belongs to the origin, so the daemon's node has another, as that of an application does.
template <Of<Daemon> E, class V>
void fields(E& e, V&& visit) {
  visit("on_node", e.node);
  visit("version", e.version);
  visit("policy", e.policy);
  visit("trace", e.trace);
  visit("pid", e.pid);
  visit("applications", e.applications);
  visit("events", e.events);
  visit("started_ns", e.started);
  visit("now_ns", e.now);
  visit("trace_error", e.trace_error);
  visit("cores", e.cores);
  visit("map_epoch", e.map_epoch);
  visit("metric", e.metric);
  visit("target_policies", e.target_policies);
  visit("agents", e.agents);
  visit("leader_place", e.leader_place);
}

template <Of<EventsLost> E, class V>
void fields(E& e, V&& visit) {
  visit("events", e.events);
}

// The type name is not a field, but part of every event. The properties keep their own keys; on the wire they are a
// map.
template <Of<User> E, class V>
void fields(E& e, V&& visit) {
  visit("properties", e.properties);
}

}  // namespace hocket::event
