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

#include <concepts>
#include <type_traits>

#include "event/event.hpp"

namespace hocket::event {

// Matches E and const E, so that one overload serves readers and writers.
template <class E, class T>
concept Of = std::same_as<std::remove_const_t<E>, T>;

// ---- application → controller ------------------------------------------------------------------------------------

// The key "application" names the origin, so the requested name has a key of its own.
template <Of<Hello> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("application_asked", e.application);
  visit("program", e.program);
  visit("mpi", e.mpi);
  visit("version", e.version);
  visit("pid", e.pid);
  visit("processes", e.processes);
  visit("forwards", e.forwards);
  visit("compute_nodes", e.compute_nodes);
  visit("curve", e.curve);
  visit("peer_pid", e.peer_pid);
  visit("file_system", e.file_system);
}

template <Of<StartIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("target", e.target);
  visit("file", e.file);
  visit("operation", e.operation);
  visit("bytes", e.bytes);
  visit("phase_bytes", e.phase_bytes);
  visit("info", e.info);
  visit("files", e.files);
  visit("rounds", e.rounds);
  visit("bytes_per_round", e.bytes_per_round);
  visit("parts", e.parts);
  visit("parts_error", e.parts_error);
  visit("file_system", e.file_system);
}

template <Of<InformIo> E, class V>
void fields(E& e, V&& visit) {
  visit("phase_bytes", e.phase_bytes);
  visit("info", e.info);
  visit("files", e.files);
  visit("rounds", e.rounds);
  visit("bytes_per_round", e.bytes_per_round);
  visit("phase_over", e.phase_over);
  visit("error", e.error);
}

template <Of<FinishIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("io_ns", e.io);
  visit("bytes", e.bytes);
  visit("phase_over", e.phase_over);
  visit("idle_ns", e.idle);
  visit("unstopped", e.unstopped);
}

template <Of<RenewIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("bytes", e.bytes);
}

template <Of<PausedIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("bytes", e.bytes);
  visit("round", e.round);
}

template <Of<AskWait> E, class V>
void fields(E& e, V&& visit) {
  visit("number", e.number);
  visit("target", e.target);
  visit("bytes", e.bytes);
  visit("parts", e.parts);
  visit("file_system", e.file_system);
}

// The intervals are texts, because no field but the properties of USER holds a list.
template <Of<IoPhase> E, class V>
void fields(E& e, V&& visit) {
  visit("index", e.index);
  visit("start_ns", e.start);
  visit("end_ns", e.end);
  visit("io_ns", e.io);
  visit("wait_ns", e.wait);
  visit("cpu_ns", e.cpu);
  visit("comm_ns", e.comm);
  visit("operations", e.operations);
  visit("bytes_read", e.bytes_read);
  visit("bytes_written", e.bytes_written);
  visit("target", e.target);
  visit("iteration", e.iteration);
  visit("processes", e.processes);
  visit("control_every", e.control_every);
  visit("flop", e.flop);
  visit("io_intervals", e.io_intervals);
  visit("wait_intervals", e.wait_intervals);
  visit("of_one_process", e.of_one_process);
  visit("told_processes", e.told_processes);
  visit("all_cpu_ns", e.all_cpu);
  visit("all_comm_ns", e.all_comm);
  visit("cpu_most_ns", e.cpu_most);
  visit("comm_most_ns", e.comm_most);
  visit("announced_left", e.announced_left);
}

template <Of<Iterations> E, class V>
void fields(E& e, V&& visit) {
  visit("iteration", e.iteration);
  visit("iterations", e.iterations);
  visit("processes", e.processes);
  visit("control_every", e.control_every);
  visit("elapsed_ns", e.elapsed);
  visit("cpu_ns", e.cpu);
  visit("comm_ns", e.comm);
}

template <Of<Malleable> E, class V>
void fields(E& e, V&& visit) {
  visit("processes", e.processes);
  visit("iteration", e.iteration);
  visit("sleeping", e.sleeping);
  visit("method", e.method);
  visit("flop_per_iteration", e.flop_per_iteration);
}

template <Of<Reconfiguration> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("done", e.done);
  visit("reason", e.reason);
  visit("sources", e.sources);
  visit("targets", e.targets);
  visit("iteration", e.iteration);
  visit("spawn", e.spawn);
  visit("spawn_strategy", e.spawn_strategy);
  visit("redistribution", e.redistribution);
  visit("redistribution_strategy", e.redistribution_strategy);
  visit("start_ns", e.start);
  visit("wait_ns", e.wait);
  visit("spawning_ns", e.spawning);
  visit("spawning_stopped_ns", e.spawning_stopped);
  visit("constant_ns", e.constant);
  visit("constant_stopped_ns", e.constant_stopped);
  visit("variable_ns", e.variable);
  visit("resuming_ns", e.resuming);
  visit("stopped_ns", e.stopped);
  visit("started", e.started);
  visit("woken", e.woken);
  visit("ended", e.ended);
  visit("put_to_sleep", e.put_to_sleep);
  visit("bytes_moved", e.bytes_moved);
  visit("bytes_kept", e.bytes_kept);
}

template <Of<StartProcesses> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("count", e.count);
  visit("port", e.port);
  visit("pid", e.pid);
  visit("app", e.app);
  visit("places", e.places);
}

template <Of<ProcessReady> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
}

template <Of<StopProcesses> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("app", e.app);
}

// ---- joining and resizing, between tools, controller and application ---------------------------------------------

template <Of<ProcessFailed> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("app", e.app);
  visit("reason", e.reason);
}

// The application to resize is not that of the origin, which is a tool.
template <Of<Resize> E, class V>
void fields(E& e, V&& visit) {
  visit("application_asked", e.application);
  visit("processes", e.processes);
  visit("relative", e.relative);
  visit("at_iteration", e.at_iteration);
  visit("places", e.places);
}

template <Of<WithdrawResize> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("begun", e.begun);
}

template <Of<Reconfigure> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("processes", e.processes);
  visit("at_iteration", e.at_iteration);
  visit("places", e.places);
  visit("asked_ns", e.asked);
}

template <Of<ProcessesReady> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("failed", e.failed);
}

// ---- leaving, I/O servers, daemon and operator -------------------------------------------------------------------

template <Of<Bye> E, class V>
void fields(E& e, V&& visit) {
  visit("cpu_ns", e.cpu);
  visit("comm_ns", e.comm);
  visit("io_ns", e.io);
  visit("wait_ns", e.wait);
  visit("io_calls", e.io_calls);
  visit("comm_calls", e.comm_calls);
  visit("bytes_read", e.bytes_read);
  visit("bytes_written", e.bytes_written);
  visit("processes", e.processes);
  visit("cpu_most_ns", e.cpu_most);
  visit("comm_most_ns", e.comm_most);
}

template <Of<MapAdopted> E, class V>
void fields(E& e, V&& visit) {
  visit("epoch", e.epoch);
  visit("aggregators", e.used.aggregators);
  visit("buffer_bytes", e.used.buffer_bytes);
  visit("method", e.used.method);
  visit("hinted", e.hinted);
}

template <Of<SlowAggregator> E, class V>
void fields(E& e, V&& visit) {
  visit("file", e.file);
  visit("rank", e.rank);
  visit("service_ns", e.service);
  visit("peers_ns", e.peers);
  visit("hold_off_ns", e.hold_off);
}

template <Of<Server> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("addresses", e.addresses);
  visit("directory", e.directory);
  visit("buffer_bytes", e.buffer_bytes);
  visit("write_behind", e.write_behind);
  visit("pid", e.pid);
  visit("heartbeat_ns", e.heartbeat);
  visit("exchange_bytes", e.exchange_bytes);
  visit("scheduler", e.scheduler);
  visit("file_system", e.file_system);
}

template <Of<ServerLoad> E, class V>
void fields(E& e, V&& visit) {
  visit("operations", e.operations);
  visit("bytes", e.bytes);
  visit("service_ns", e.service);
  visit("queue", e.queue);
  visit("held_bytes", e.held_bytes);
  visit("oldest_ns", e.oldest);
  visit("forwarded", e.forwarded);
  visit("forwarded_bytes", e.forwarded_bytes);
  visit("system_calls", e.system_calls);
  visit("merged", e.merged);
  visit("forward_waited_ns", e.forward_waited);
  visit("forward_queue", e.forward_queue);
  visit("forward_shares", e.forward_shares);
}

template <Of<SchedulerUsed> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("scheduler", e.scheduler);
  visit("previous", e.previous);
  visit("forward_queue", e.forward_queue);
  visit("error", e.error);
}

template <Of<AskApplication> E, class V>
void fields(E& e, V&& visit) {
  visit("pids", e.pids);
}

template <Of<MapStored> E, class V>
void fields(E& e, V&& visit) {
  visit("epoch", e.epoch);
}

template <Of<DataSetsLeft> E, class V>
void fields(E& e, V&& visit) {
  visit("epoch", e.epoch);
  visit("kept", e.kept);
  visit("bytes", e.bytes);
  visit("text", e.text);
}

template <Of<Lost> E, class V>
void fields(E& e, V&& visit) {
  visit("reason", e.reason);
}

template <Of<ServerEnded> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("pid", e.pid);
}

// Times are seconds here, as doubles: they are means and not moments.
template <Of<Profile> E, class V>
void fields(E& e, V&& visit) {
  visit("app", e.app);
  visit("processes", e.processes);
  visit("iteration_s", e.iteration_s);
  visit("iteration_spread_s", e.iteration_spread_s);
  visit("io_s", e.io_s);
  visit("io_spread_s", e.io_spread_s);
  visit("samples", e.samples);
  visit("flop_per_iteration", e.flop_per_iteration);
  visit("comm_s", e.comm_s);
}

// TICK has no fields: its time is that of the event.
template <Of<Tick> E, class V>
void fields(E&, V&&) {}

template <Of<SetPolicy> E, class V>
void fields(E& e, V&& visit) {
  visit("policy", e.policy);
  visit("metric", e.metric);
  visit("for_application", e.application);
  visit("target", e.target);
  visit("allow", e.allow);
}

template <Of<SetServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("action", e.action);
  visit("for_application", e.application);
  visit("scheduler", e.scheduler);
  visit("data_servers", e.data_servers);
  visit("stripe_bytes", e.stripe_bytes);
}

// ---- controller → application ------------------------------------------------------------------------------------

template <Of<Welcome> E, class V>
void fields(E& e, V&& visit) {
  visit("app", e.app);
  visit("application_given", e.application);
  visit("policy", e.policy);
  visit("lease_ns", e.lease);
  visit("held_targets", e.held_targets);
}

template <Of<HeldTargets> E, class V>
void fields(E& e, V&& visit) {
  visit("held_targets", e.targets);
}

template <Of<QueuedIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("position", e.position);
  visit("behind", e.behind);
}

template <Of<GrantIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("waited_ns", e.waited);
  visit("target", e.target);
  visit("share", e.share);
}

// The key "application" names the origin.
template <Of<AskCores> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("application_asked", e.application);
  visit("processes", e.processes);
  visit("longest_ns", e.longest);
}

template <Of<CoresFor> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("wait", e.wait);
  visit("missing", e.missing);
  visit("waited_ns", e.waited);
}

template <Of<ExpectedWait> E, class V>
void fields(E& e, V&& visit) {
  visit("number", e.number);
  visit("target", e.target);
  visit("wait_ns", e.wait);
  visit("uncertainty_ns", e.uncertainty);
  visit("ahead", e.ahead);
}

template <Of<PauseIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("because_of", e.because_of);
  visit("target", e.target);
}

template <Of<NewServerMap> E, class V>
void fields(E& e, V&& visit) {
  visit("epoch", e.epoch);
  visit("text", e.text);
  visit("write_through", e.write_through);
  visit("aggregators", e.tuning.aggregators);
  visit("buffer_bytes", e.tuning.buffer_bytes);
  visit("method", e.tuning.method);
  visit("direct", e.direct);
}

// The key "application" names the origin, so the holder has a key of its own.
template <Of<MoveDataSets> E, class V>
void fields(E& e, V&& visit) {
  visit("epoch", e.epoch);
  visit("text", e.text);
  visit("drained", e.drained);
}

template <Of<UseScheduler> E, class V>
void fields(E& e, V&& visit) {
  visit("scheduler", e.scheduler);
  visit("data_servers", e.data_servers);
  visit("stripe_bytes", e.stripe_bytes);
}

template <Of<ApplicationFor> E, class V>
void fields(E& e, V&& visit) {
  visit("pids", e.pids);
  visit("pid", e.pid);
  visit("for_application", e.application);
  visit("processes", e.processes);
}

template <Of<LeaseExpired> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("holder", e.application);
  visit("target", e.target);
}

template <Of<Decision> E, class V>
void fields(E& e, V&& visit) {
  visit("number", e.number);
  visit("policy", e.policy);
  visit("decided_for", e.decided_for);
  visit("because_of", e.because_of);
  visit("action", e.action);
  visit("from", e.from);
  visit("to", e.to);
  visit("at_iteration", e.at_iteration);
  visit("return_at_iteration", e.return_at_iteration);
  visit("conflict_ns", e.conflict);
  visit("overlap_ns", e.overlap);
  visit("start_before_ns", e.start_before);
  visit("start_after_ns", e.start_after);
  visit("period_after_ns", e.period_after);
  visit("text", e.text);
  visit("reason", e.reason);
  visit("obstacle", e.obstacle);
  visit("wanted", e.wanted);
}

template <Of<Outcome> E, class V>
void fields(E& e, V&& visit) {
  visit("decision", e.decision);
  visit("decided_for", e.decided_for);
  visit("quantity", e.quantity);
  visit("predicted_s", e.predicted_s);
  visit("actual_s", e.actual_s);
  visit("met", e.met);
  visit("text", e.text);
  visit("uncertainty_s", e.uncertainty_s);
  visit("period_s", e.period_s);
  visit("how", e.how);
  visit("processes", e.processes);
}

template <Of<Model> E, class V>
void fields(E& e, V&& visit) {
  visit("modelled", e.application);
  visit("model", e.model);
  visit("text", e.text);
  visit("period_ns", e.period);
  visit("period_spread_ns", e.period_spread);
}

template <Of<SlowIoServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("service_ns", e.service);
  visit("peers_ns", e.peers);
  visit("reports", e.reports);
  visit("hold_off_ns", e.hold_off);
  visit("text", e.text);
}

template <Of<HungIoServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("pid", e.pid);
  visit("silent_ns", e.silent);
}

template <Of<Refused> E, class V>
void fields(E& e, V&& visit) {
  visit("text", e.text);
}

// ---- tools -------------------------------------------------------------------------------------------------------

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
