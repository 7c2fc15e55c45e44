// The fields of events that applications and I/O servers send (event/fields.hpp). Pure.
#pragma once

#include "event/member_events.hpp"
#include "event/of.hpp"

namespace hocket::event {

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
  visit("delegations", e.delegations);
  visit("user", e.user);
  visit("slurm_step", e.slurm_step);
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
  visit("delegation", e.delegation);
  visit("ago_ns", e.ago);
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
  visit("ago_ns", e.ago);
}

template <Of<FinishIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("io_ns", e.io);
  visit("bytes", e.bytes);
  visit("phase_over", e.phase_over);
  visit("idle_ns", e.idle);
  visit("unstopped", e.unstopped);
  visit("ago_ns", e.ago);
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

template <Of<ReturnIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
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
  visit("ago_ns", e.ago);
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
  visit("nodes", e.nodes);
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
  visit("nodes", e.nodes);
  visit("left", e.left);
}

template <Of<StartProcesses> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("count", e.count);
  visit("port", e.port);
  visit("pid", e.pid);
  visit("app", e.app);
  visit("places", e.places);
  visit("on_node", e.node);
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
  visit("scheduler_by", e.scheduler_by);
  visit("instance", e.instance);
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
  visit("forward_weights", e.forward_weights);
}

template <Of<SchedulerUsed> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("scheduler", e.scheduler);
  visit("previous", e.previous);
  visit("forward_queue", e.forward_queue);
  visit("error", e.error);
  visit("scheduler_by", e.scheduler_by);
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

}  // namespace hocket::event
