// The fields of events that the controller sends (event/fields.hpp). Pure.
#pragma once

#include "event/command_events.hpp"
#include "event/of.hpp"

namespace hocket::event {

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
  visit("delegated", e.delegated);
}

template <Of<CoresFor> E, class V>
void fields(E& e, V&& visit) {
  visit("job", e.job);
  visit("wait", e.wait);
  visit("missing", e.missing);
  visit("waited_ns", e.waited);
}

template <Of<ChangeAllocation> E, class V>
void fields(E& e, V&& visit) {
  visit("allocation", e.allocation);
  visit("release", e.release);
  visit("cores", e.cores);
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

template <Of<RecallIo> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("because_of", e.because_of);
  visit("target", e.target);
}

template <Of<Reconfigure> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("processes", e.processes);
  visit("at_iteration", e.at_iteration);
  visit("places", e.places);
  visit("asked_ns", e.asked);
  visit("methods", e.methods);
  visit("leave", e.leave);
}

template <Of<ProcessesReady> E, class V>
void fields(E& e, V&& visit) {
  visit("request", e.request);
  visit("failed", e.failed);
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
  visit("scheduler_by", e.scheduler_by);
}

template <Of<ApplicationFor> E, class V>
void fields(E& e, V&& visit) {
  visit("pids", e.pids);
  visit("pid", e.pid);
  visit("for_application", e.application);
  visit("processes", e.processes);
  visit("weight", e.weight);
}

template <Of<ApplicationWeight> E, class V>
void fields(E& e, V&& visit) {
  visit("for_application", e.application);
  visit("weight", e.weight);
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
  visit("instance", e.instance);
}

template <Of<Refused> E, class V>
void fields(E& e, V&& visit) {
  visit("text", e.text);
}

}  // namespace hocket::event
