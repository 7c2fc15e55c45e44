// The fields of events that node agents, hocketd and tools send to the controller (event/fields.hpp). Pure.
#pragma once

#include "event/daemon_events.hpp"
#include "event/of.hpp"

namespace hocket::event {

template <Of<Lost> E, class V>
void fields(E& e, V&& visit) {
  visit("reason", e.reason);
}

template <Of<ServerEnded> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("pid", e.pid);
  visit("instance", e.instance);
}

template <Of<ProcessFailed> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("app", e.app);
  visit("reason", e.reason);
}

template <Of<NodeCores> E, class V>
void fields(E& e, V&& visit) {
  visit("on_node", e.node);
  visit("cores", e.cores);
}

template <Of<LeaderPlace> E, class V>
void fields(E& e, V&& visit) {
  visit("place", e.place);
  visit("told_by", e.told_by);
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

// The application to resize is not that of the origin, which is a tool.
template <Of<Resize> E, class V>
void fields(E& e, V&& visit) {
  visit("application_asked", e.application);
  visit("processes", e.processes);
  visit("relative", e.relative);
  visit("at_iteration", e.at_iteration);
  visit("places", e.places);
  visit("methods", e.methods);
  visit("leave", e.leave);
}

template <Of<WithdrawResize> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("begun", e.begun);
}

// The key "application" names the origin.
template <Of<AskCores> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("application_asked", e.application);
  visit("processes", e.processes);
  visit("longest_ns", e.longest);
}

template <Of<HeldNodes> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("allocation", e.allocation);
  visit("nodes", e.nodes);
  visit("least_nodes", e.least_nodes);
  visit("most_nodes", e.most_nodes);
  visit("waited_ns", e.waited);
  visit("text", e.text);
}

template <Of<SetServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("action", e.action);
  visit("for_application", e.application);
  visit("scheduler", e.scheduler);
  visit("data_servers", e.data_servers);
  visit("stripe_bytes", e.stripe_bytes);
  visit("weight", e.weight);
}

template <Of<StartServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("on_node", e.node);
  visit("arguments", e.arguments);
  visit("token", e.token);
}

template <Of<StopServer> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("instance", e.instance);
}

template <Of<ServerStarted> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("on_node", e.node);
  visit("pid", e.pid);
  visit("token", e.token);
}

template <Of<ServerFailed> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
  visit("on_node", e.node);
  visit("reason", e.reason);
  visit("token", e.token);
}

template <Of<AskFingerprint> E, class V>
void fields(E& e, V&& visit) {
  visit("app", e.app);
  visit("program", e.program);
}

template <Of<ProgramFingerprint> E, class V>
void fields(E& e, V&& visit) {
  visit("app", e.app);
  visit("program", e.program);
  visit("sha256", e.sha256);
}

}  // namespace hocket::event
