// Lists the fields of each reason once, as event/fields.hpp does for events. Members are of type std::string,
// std::int64_t, bool or double. Pure.
#pragma once

#include "event/fields.hpp"
#include "event/reason.hpp"

namespace hocket::event {

template <Of<NoReason> E, class V>
void fields(E&, V&&) {}

template <Of<AccessChoice> E, class V>
void fields(E& e, V&& visit) {
  visit("target", e.target);
  visit("metric", e.metric);
  visit("wait", e.wait);
  visit("delay", e.delay);
  visit("interfere", e.interfere);
  visit("interrupt", e.interrupt);
  visit("parts", e.parts);
}

template <Of<SlowdownEstimate> E, class V>
void fields(E& e, V&& visit) {
  visit("late_s", e.late_s);
  visit("run_s", e.run_s);
  visit("error", e.error);
  visit("accesses", e.accesses);
}

template <Of<AnnouncedIo> E, class V>
void fields(E& e, V&& visit) {
  visit("announced", e.announced);
  visit("accessed", e.accessed);
  visit("phases", e.phases);
}

template <Of<InformationIgnored> E, class V>
void fields(E& e, V&& visit) {
  visit("error", e.error);
}

template <Of<PartsIgnored> E, class V>
void fields(E& e, V&& visit) {
  visit("target", e.target);
  visit("file", e.file);
  visit("parts", e.parts);
  visit("error", e.error);
}

template <Of<TargetHeld> E, class V>
void fields(E& e, V&& visit) {
  visit("named", e.named);
  visit("target", e.target);
  visit("file", e.file);
}

template <Of<AggregatorSlow> E, class V>
void fields(E& e, V&& visit) {
  visit("rank", e.rank);
  visit("file", e.file);
  visit("service_s", e.service_s);
  visit("peers_s", e.peers_s);
  visit("hold_off_s", e.hold_off_s);
}

template <Of<PhaseConflict> E, class V>
void fields(E& e, V&& visit) {
  visit("own_start_s", e.own_start_s);
  visit("other_start_s", e.other_start_s);
  visit("uncertainty_s", e.uncertainty_s);
}

template <Of<PhaseShift> E, class V>
void fields(E& e, V&& visit) {
  fields(e.conflict, visit);
  visit("iterations", e.iterations);
  visit("time_s", e.time_s);
  visit("earlier_s", e.earlier_s);
  visit("cost_s", e.cost_s);
  visit("saved_s", e.saved_s);
}

template <Of<PeriodCoupling> E, class V>
void fields(E& e, V&& visit) {
  fields(e.conflict, visit);
  visit("period_s", e.period_s);
  visit("coupled_period_s", e.coupled_period_s);
  visit("other_period_s", e.other_period_s);
  visit("multiple", e.multiple);
}

template <Of<IrregularPhases> E, class V>
void fields(E& e, V&& visit) {
  visit("period_s", e.period_s);
  visit("spread_s", e.spread_s);
}

template <Of<EqualPart> E, class V>
void fields(E& e, V&& visit) {
  visit("cores", e.cores);
  visit("applications", e.applications);
  visit("bounded", e.bounded);
}

template <Of<SpeedupGain> E, class V>
void fields(E& e, V&& visit) {
  visit("gain_now", e.gain_now);
  visit("gain_then", e.gain_then);
  visit("bounded", e.bounded);
}

template <Of<IoBalance> E, class V>
void fields(E& e, V&& visit) {
  visit("gain_now", e.gain_now);
  visit("gain_then", e.gain_then);
  visit("io_ratio_now", e.io_ratio_now);
  visit("io_ratio_then", e.io_ratio_then);
  visit("bounded", e.bounded);
}

template <Of<ObjectiveGain> E, class V>
void fields(E& e, V&& visit) {
  visit("gain", e.gain);
  visit("objective", e.objective);
  visit("flop_source", e.flop_source);
  visit("bounded", e.bounded);
}

template <Of<ProbeStep> E, class V>
void fields(E& e, V&& visit) {
  visit("original", e.original);
}

template <Of<CoresReclaimed> E, class V>
void fields(E& e, V&& visit) {
  visit("cores", e.cores);
  visit("missing", e.missing);
}

template <Of<CoresAwaited> E, class V>
void fields(E& e, V&& visit) {
  visit("cores", e.cores);
  visit("missing", e.missing);
  visit("waited_s", e.waited_s);
}

template <Of<PolicyEnded> E, class V>
void fields(E&, V&&) {}

template <Of<GivenUp> E, class V>
void fields(E& e, V&& visit) {
  visit("decision", e.decision);
}

template <Of<ServersInUse> E, class V>
void fields(E& e, V&& visit) {
  visit("servers", e.servers);
  visit("epoch", e.epoch);
}

template <Of<ServersGiven> E, class V>
void fields(E& e, V&& visit) {
  visit("given", e.given);
  visit("servers", e.servers);
  visit("shared", e.shared);
  visit("nodes", e.nodes);
  visit("processes", e.processes);
  visit("bandwidth", e.bandwidth);
  visit("alone", e.alone);
  visit("sum", e.sum);
  visit("applications", e.applications);
  visit("given_out", e.given_out);
  visit("pool", e.pool);
  visit("next", e.next);
  visit("next_sum", e.next_sum);
  visit("least", e.least);
  visit("fell_back", e.fell_back);
  visit("epoch", e.epoch);
  visit("file_system", e.file_system);
  visit("none_up", e.none_up);
  visit("system_nodes", e.system_nodes);
  visit("system_servers", e.system_servers);
  visit("nodes_assumed", e.nodes_assumed);
}

template <Of<IoTuned> E, class V>
void fields(E& e, V&& visit) {
  visit("aggregators", e.aggregators);
  visit("buffer_bytes", e.buffer_bytes);
  visit("method", e.method);
  visit("epoch", e.epoch);
}

template <Of<SchedulerChanged> E, class V>
void fields(E& e, V&& visit) {
  visit("scheduler", e.scheduler);
  visit("previous", e.previous);
  visit("waiting", e.waiting);
  visit("by", e.by);
}

template <Of<ApplicationWeighed> E, class V>
void fields(E& e, V&& visit) {
  visit("weight", e.weight);
  visit("previous", e.previous);
  visit("by", e.by);
}

template <Of<SchedulerRefused> E, class V>
void fields(E& e, V&& visit) {
  visit("scheduler", e.scheduler);
  visit("why", e.why);
}

template <Of<InvalidValue> E, class V>
void fields(E& e, V&& visit) {
  visit("what", e.what);
  visit("given", e.given);
  visit("least", e.least);
  visit("most", e.most);
}

template <Of<HintsFirst> E, class V>
void fields(E& e, V&& visit) {
  visit("what", e.what);
}

template <Of<ServerGone> E, class V>
void fields(E& e, V&& visit) {
  visit("server", e.server);
}

template <Of<ChangedLately> E, class V>
void fields(E& e, V&& visit) {
  visit("since_s", e.since_s);
  visit("least_s", e.least_s);
}

template <Of<Circumstance> E, class V>
void fields(E& e, V&& visit) {
  visit("what", e.what);
}

template <Of<SpeedupMissing> E, class V>
void fields(E& e, V&& visit) {
  visit("needed", e.needed);
  visit("known", e.known);
}

template <Of<CoresMissing> E, class V>
void fields(E& e, V&& visit) {
  visit("needed", e.needed);
  visit("available", e.available);
}

template <Of<SavingTooLarge> E, class V>
void fields(E& e, V&& visit) {
  visit("needed_s", e.needed_s);
  visit("available_s", e.available_s);
}

template <Of<NotWorthIt> E, class V>
void fields(E& e, V&& visit) {
  visit("cost_s", e.cost_s);
  visit("saved_s", e.saved_s);
  visit("periods", e.periods);
}

template <Of<ThirdConflict> E, class V>
void fields(E& e, V&& visit) {
  visit("shift_s", e.shift_s);
  visit("third", e.third);
}

template <Of<NeitherResizable> E, class V>
void fields(E& e, V&& visit) {
  visit("own_misses", e.own_misses);
  visit("own_phases", e.own_phases);
  visit("other_misses", e.other_misses);
  visit("other_phases", e.other_phases);
}

template <Of<InvalidSize> E, class V>
void fields(E& e, V&& visit) {
  visit("processes", e.processes);
  visit("most", e.most);
}

template <Of<IterationPast> E, class V>
void fields(E& e, V&& visit) {
  visit("iteration", e.iteration);
  visit("done", e.done);
}

template <Of<StopsTooLong> E, class V>
void fields(E& e, V&& visit) {
  visit("stopped_s", e.stopped_s);
  visit("run_s", e.run_s);
  visit("most", e.most);
}

template <Of<ReturnsTooEarly> E, class V>
void fields(E& e, V&& visit) {
  visit("iteration", e.iteration);
}

template <Of<ResizedTooLate> E, class V>
void fields(E& e, V&& visit) {
  visit("iteration", e.iteration);
}

template <Of<CoresExceeded> E, class V>
void fields(E& e, V&& visit) {
  visit("processes", e.processes);
  visit("cores", e.cores);
  visit("used", e.used);
}

template <Of<ResizedByTool> E, class V>
void fields(E& e, V&& visit) {
  visit("processes", e.processes);
}

}  // namespace hocket::event
