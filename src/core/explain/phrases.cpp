#include "explain/phrases.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "event/chooser.hpp"
#include "explain/explain.hpp"
#include "explain/words.hpp"

namespace hocket::explain {
namespace {

namespace circumstance = event::circumstance;

// Returns seconds with two decimals, from 10 s on with one, because predictions are not exact.
std::string about_seconds(double seconds) { return decimals(seconds, std::abs(seconds) < 10 ? 2 : 1) + " s"; }

// Returns two decimals, or two significant digits if the value is small.
std::string gain_text(double value) { return std::abs(value) < 0.1 ? significant(value, 2) : decimals(value, 2); }

// Each circumstance has a phrase. '@' stands for the application's name in quotes, '$' for the plain name.
constexpr std::array<std::pair<std::string_view, std::string_view>, circumstance::all.size()> circumstances{{
    {circumstance::not_malleable, "@ is not malleable"},
    {circumstance::set_by_hand, "the size of @ was set by hand"},
    {circumstance::resized_by_hand, "@ is resized by hand: policies leave it alone until they are chosen anew"},
    {circumstance::being_resized, "@ is being resized already"},
    {circumstance::resize_refused, "@ did not do its last resize"},
    {circumstance::same_size, "@ has them already"},
    {circumstance::nobody_commands, "@ has no process that receives resize requests"},
    {circumstance::no_control_points, "$ comes to no two control points before that"},
    {circumstance::unknown_times, "nothing is known of $ at other sizes"},
    {circumstance::cost_grows, "$ would need the more processes, the more its resizes cost"},
    {circumstance::later_leader, "this leader is not the first of the list, so it gives out no cores"},
    {circumstance::process_lost, "the process that was asked is lost"},
    {circumstance::other_size, "it has another size than it was asked for"},
    {circumstance::not_done, "it did not do it"},
    {circumstance::own_size, "it changed its size by itself"},
    {circumstance::phase_early, "its I/O phase came before it was back"},
    {circumstance::phase_missing, "its I/O phase did not come"},
    {circumstance::no_answer, "it did not answer in time"},
    {circumstance::last_server, "@ is the last I/O server that is up"},
    {circumstance::drained_by_hand, "@ was drained by hand"},
    {circumstance::assigned_by_hand, "the I/O servers of @ were assigned by hand"},
    {circumstance::map_not_adopted, "@ has not adopted its last server map yet"},
    {circumstance::weighed_lately,
     "the weights of I/O servers were changed lately, and a policy changes them every 5 s at most"},
    {circumstance::not_forwarded, "@ is not forwarded, so it uses I/O servers"},
    {circumstance::other_file_system, "some of these I/O servers are not on the file system of @"},
    {circumstance::scheduler_by_hand, "the scheduler of @ was chosen by hand"},
    {circumstance::weight_by_hand, "the weight of @ was chosen by hand"},
}};

// Returns the words for the source of a FLOP count; the names are those of APPLICATION.
std::string_view flop_source_text(std::string_view source) {
  if (source == "profile") return "profile of an earlier run";
  if (source == "counters") return "hardware counters";
  return source.empty() ? "not known (iterations)" : source;
}

// Returns the words for who has chosen a setting.
std::string_view chooser_of(std::string_view by) {
  if (by == event::chooser::by_policy) return "the policy";
  if (by == event::chooser::by_configuration) return "hocket.toml";
  if (by == event::chooser::by_default) return "the end of an earlier choice";
  return "a tool";
}

// Makes the phrases for one decision; each reason has an overload.
class Phrases {
 public:
  explicit Phrases(const event::Decision& decision) : decision_(decision), name_(decision.decided_for) {}

  std::string operator()(const event::NoReason&) const { return {}; }

  std::string operator()(const event::AccessChoice& choice) const {
    const std::string& action = decision_.action;
    const std::string& other = decision_.because_of;
    if (action == "hold") return held(choice);
    std::string does = " waits for ";
    if (action == "interrupt") does = " interrupts ";
    if (action == "interfere" || action == "deadlock") does = " goes beside ";
    if (action == "delay") does = " waits for a while, then goes beside ";
    const std::string whom = other.empty() ? " waits" : does + quoted(other);
    const char* more = action == "deadlock" ? ", which waits for what it has itself" : "";
    return quoted(name_) + whom + " on " + choice.target + (choice.parts.empty() ? "" : " (" + choice.parts + ")") +
           more + costs(choice);
  }

  std::string operator()(const event::SlowdownEstimate& estimate) const {
    const double late_s = std::abs(estimate.late_s);
    const std::string off = estimate.accesses == 0
                                ? "no access showed how good the estimate is"
                                : "the estimate was off by " + percent_text(estimate.error) + " in the mean of " +
                                      number(estimate.accesses) + " accesses that nobody ordered";
    return "the I/O of " + quoted(name_) + ", waits included, took an estimated " + seconds_text(late_s) +
           (estimate.late_s > 0 ? " more" : " less") + " than uncoordinated, " + percent_text(late_s / estimate.run_s) +
           " of its time; " + off;
  }

  std::string operator()(const event::AnnouncedIo& io) const {
    const std::string sizes = quoted(name_) + " announced " + number(io.announced) + " bytes for its I/O phase, and " +
                              number(io.accessed) + " were accessed";
    if (decision_.action == "doubt")
      return sizes + "; after " + number(io.phases) + " more such phase its announcements are ignored";
    if (decision_.action == "ignore")
      return sizes + "; its announcements are ignored until they hold in two phases in a row";
    return sizes + "; its announcements count again";
  }

  std::string operator()(const event::InformationIgnored& ignored) const {
    return quoted(name_) + " gave wrong information: " + ignored.error;
  }

  std::string operator()(const event::PartsIgnored& ignored) const {
    const std::string of_file = ignored.file.empty() ? "" : " for " + ignored.file;
    return quoted(name_) + " named the parts " + quoted(ignored.parts) + of_file + ": " + ignored.error +
           ", so it uses all of " + ignored.target;
  }

  std::string operator()(const event::TargetHeld& held) const {
    const std::string of_file = held.file.empty() ? "" : " for " + held.file;
    return quoted(name_) + " named the target " + quoted(held.named) + of_file + ": the operator set the policy of " +
           held.target + ", so it asks for that";
  }

  std::string operator()(const event::AggregatorSlow& slow) const {
    return "rank " + number(slow.rank) + " of " + quoted(name_) + " takes " + decimals(slow.service_s * 1e3, 3) +
           " ms for an access of " + slow.file + ", its peers " + decimals(slow.peers_s * 1e3, 3) +
           " ms: it aggregates for the file again in " + about_seconds(slow.hold_off_s);
  }

  std::string operator()(const event::PhaseConflict& conflict) const {
    return "the I/O phase of " + name_ + " in " + about_seconds(conflict.own_start_s) + " would meet that of " +
           decision_.because_of + " in " + about_seconds(conflict.other_start_s) + " for " +
           about_seconds(to_s(decision_.overlap)) + ", " + about_seconds(conflict.uncertainty_s) +
           " of uncertainty included";
  }

  std::string operator()(const event::PhaseShift& shift) const {
    return (*this)(shift.conflict) + "; " + name_ + " grows" + sizes() + " for " + number(shift.iterations) +
           " iterations (" + about_seconds(shift.time_s) + "), so that it begins its I/O " +
           about_seconds(shift.earlier_s) + " earlier and is through before " + decision_.because_of +
           " begins; its resizes stop it for " + about_seconds(shift.cost_s) + ", and " + about_seconds(shift.saved_s) +
           " of waiting are saved";
  }

  std::string operator()(const event::PeriodCoupling& coupling) const {
    const std::string times = coupling.multiple > 1 ? number(coupling.multiple) + " times " : "";
    const bool grows = decision_.to > decision_.from;
    return (*this)(coupling.conflict) + "; " + name_ + (grows ? " grows for good" : " gives processes back") + sizes() +
           ", so that its I/O period " + (grows ? "falls from " : "rises from ") + about_seconds(coupling.period_s) +
           " to " + about_seconds(coupling.coupled_period_s) + ", " + times + "that of " + decision_.because_of + " (" +
           about_seconds(coupling.other_period_s) + ")";
  }

  std::string operator()(const event::IrregularPhases& irregular) const {
    return irregular_text(name_, irregular.period_s, irregular.spread_s) + ", so nothing is done about whom they meet";
  }

  std::string operator()(const event::EqualPart& part) const {
    return goes() + "an equal part of the " + number(part.cores) + " cores that " + number(part.applications) +
           " applications share" + bound(part.bounded);
  }

  std::string operator()(const event::SpeedupGain& speedup) const {
    return goes() + "one more adds " + gain_text(speedup.gain_now) + " to its speedup now, and " +
           gain_text(speedup.gain_then) + " then" + bound(speedup.bounded);
  }

  std::string operator()(const event::IoBalance& balance) const {
    const auto at = [](double gain, double io_ratio) {
      return gain_text(gain) + " at an I/O ratio of " + gain_text(100 * io_ratio) + " %";
    };
    return goes() + "one more adds to its speedup " + at(balance.gain_now, balance.io_ratio_now) + " now, and " +
           at(balance.gain_then, balance.io_ratio_then) + " then" + bound(balance.bounded);
  }

  std::string operator()(const event::ObjectiveGain& best) const {
    const char* what = best.objective == "flops" ? "FLOPS" : "progress";
    return goes() + "all changes together are predicted to bring " + gain_text(100 * best.gain) + " % more " + what +
           ", waits for I/O included; its FLOP: " + std::string{flop_source_text(best.flop_source)} +
           bound(best.bounded);
  }

  std::string operator()(const event::ProbeStep& probe) const {
    return quoted(name_) + " is measured with " + processes_text(decision_.to) +
           " for some I/O periods, for a policy needs its times beyond " + processes_text(decision_.from) +
           "; then it has " + processes_text(probe.original) + " again";
  }

  std::string operator()(const event::CoresReclaimed& reclaimed) const {
    return quoted(name_) + " gives back " + cores_text(reclaimed.cores) + ": others were started that need " +
           number(reclaimed.missing) + " more than there are";
  }

  std::string operator()(const event::CoresAwaited& awaited) const {
    std::string text = quoted(name_) + " waited " + seconds_text(awaited.waited_s) + " before it started, and got " +
                       cores_text(awaited.cores) + " that others gave back";
    if (awaited.missing > 0) text += "; " + number(awaited.missing) + " are still missing";
    return text;
  }

  std::string operator()(const event::ServersInUse& use) const {
    const std::string words = own_words();
    return words + "I/O servers from epoch " + number(use.epoch) + " on: " + use.servers;
  }

  std::string operator()(const event::ServersGiven& given) const {
    if (given.none_up) return none_up(given);
    const std::string where = given.file_system.empty() ? "" : " on " + given.file_system;
    std::string text = quoted(name_) + " gets " + servers_text(given) + by_rule(given);
    text += std::isnan(given.bandwidth) ? "; nobody has measured its bandwidth" + by_default(given)
                                        : "; expected: " + rate_text(given.bandwidth) + of_alone(given);
    text += "; all " + number(given.applications) + where + ": " + rate_text(given.sum) + " with " +
            number(given.given_out) + " of " + number(given.pool) + (given.pool == 1 ? " server" : " servers");
    if (given.next >= 0)
      text += "; next best: " + number(given.next) + (given.next == 1 ? " server, " : " servers, ") +
              rate_text(given.next_sum) + " in all";
    return text + "; epoch " + number(given.epoch);
  }

  std::string operator()(const event::IoTuned& tuned) const {
    std::string text = own_words();
    text += "collective I/O from epoch " + number(tuned.epoch) + " on: ";
    if (tuned == event::IoTuned{.epoch = tuned.epoch}) return text + "hints and defaults";
    const char* between = "";
    if (tuned.aggregators > 0) {
      text += number(tuned.aggregators) + (tuned.aggregators == 1 ? " aggregator" : " aggregators");
      between = ", ";
    }
    if (tuned.buffer_bytes > 0) text += std::exchange(between, ", ") + number(tuned.buffer_bytes) + " bytes of buffer";
    if (!tuned.method.empty()) text += between + ("method " + quoted(tuned.method));
    return text;
  }

  std::string operator()(const event::SchedulerChanged& change) const {
    std::string text = own_words() + std::string{chooser_of(change.by)} + " changed the request scheduler from " +
                       quoted(change.previous) + " to " + quoted(change.scheduler);
    if (change.waiting > 0)
      text += "; " + number(change.waiting) + (change.waiting == 1 ? " access" : " accesses") + " waited";
    return text;
  }

  std::string operator()(const event::ApplicationWeighed& weighed) const {
    return own_words() + std::string{chooser_of(weighed.by)} + " changed its weight beside other applications from " +
           number(weighed.previous) + " to " + number(weighed.weight);
  }

  std::string operator()(const event::SchedulerRefused& refused) const {
    return quoted(name_) + " refused the scheduler " + quoted(refused.scheduler) + ": " + refused.why;
  }

  std::string operator()(const event::InvalidValue& invalid) const {
    const std::string start = "invalid " + invalid.what + " " + quoted(invalid.given) + ": must be ";
    if (invalid.most > 0) return start + number(invalid.least) + " to " + number(invalid.most);
    return start + "'auto', 'view' or 'list'";
  }

  std::string operator()(const event::HintsFirst& hints) const {
    return "hints of " + quoted(name_) + " go first: " + hints.what;
  }

  std::string operator()(const event::ServerGone& gone) const {
    return "no I/O server called " + quoted(gone.server) + " runs";
  }

  std::string operator()(const event::ChangedLately& lately) const {
    return quoted(name_) + " was changed " + about_seconds(lately.since_s) + " ago, and a policy changes it every " +
           about_seconds(lately.least_s) + " at most";
  }

  std::string operator()(const event::PolicyEnded&) const {
    return quoted(name_) + " has " + processes_text(decision_.to) +
           " again: the policy that changed it is not in force any more";
  }

  std::string operator()(const event::GivenUp& given_up) const {
    return "decision " + number(given_up.decision) + " about " + quoted(name_) + " is given up";
  }

  std::string operator()(const event::Circumstance& one) const {
    for (const auto& [what, form] : circumstances) {
      if (what == one.what) return named(form);
    }
    return one.what;  // of a later version
  }

  std::string operator()(const event::SpeedupMissing& missing) const {
    return name_ + " would have to run " + decimals(missing.needed, 2) + " times as fast, and " +
           decimals(missing.known, 2) + " is the most that is known of it";
  }

  std::string operator()(const event::CoresMissing& missing) const {
    return name_ + " would need " + cores_text(missing.needed) + " more, and " + number(missing.available) +
           " are free";
  }

  std::string operator()(const event::SavingTooLarge& saving) const {
    return name_ + " would have to save " + about_seconds(saving.needed_s) + " of " + about_seconds(saving.available_s);
  }

  std::string operator()(const event::NotWorthIt& worth) const {
    return "its resizes would stop " + name_ + " for " + about_seconds(worth.cost_s) + ", and save " +
           about_seconds(worth.saved_s) + " of waiting in the " + number(worth.periods) +
           " periods that can be looked ahead";
  }

  std::string operator()(const event::ThirdConflict& conflict) const {
    return "a shift by " + about_seconds(conflict.shift_s) + " would bring " + name_ + " to where " + conflict.third +
           " is expected to do its I/O";
  }

  std::string operator()(const event::NeitherResizable& neither) const {
    const auto missed = [](const std::string& application, std::int64_t misses, std::int64_t phases) {
      if (phases == 0) return std::string{};
      return "; " + number(misses) + " predictions about " + application + " missed lately, so it is left alone for " +
             number(phases) + " more I/O phases";
    };
    return "neither of them can be resized now" + missed(name_, neither.own_misses, neither.own_phases) +
           missed(decision_.because_of, neither.other_misses, neither.other_phases);
  }

  std::string operator()(const event::InvalidSize& invalid) const {
    return "invalid size " + number(invalid.processes) + ": must be 1 to " + number(invalid.most);
  }

  std::string operator()(const event::IterationPast& past) const {
    return "iteration " + number(past.iteration) + " is past, " + number(past.done) + " are done";
  }

  std::string operator()(const event::StopsTooLong& stops) const {
    return "its resizes would have stopped " + quoted(name_) + " for " + seconds_text(stops.stopped_s) + " of the " +
           seconds_text(stops.run_s) + " that it has run, which is more than " + significant(100 * stops.most, 4) +
           " %";
  }

  std::string operator()(const event::ReturnsTooEarly& early) const {
    return "it would be back at iteration " + number(early.iteration) + ", which is too early";
  }

  std::string operator()(const event::ResizedTooLate& late) const {
    return "its resize came too late: it was to be back at iteration " + number(late.iteration);
  }

  std::string operator()(const event::CoresExceeded& exceeded) const { return sentence(exceeded, name_); }

  std::string operator()(const event::ResizedByTool& resized) const {
    return quoted(name_) + " is being resized to " + processes_text(resized.processes) + " by a tool";
  }

 private:
  // Returns the words of a policy in Python, to which further ones are added.
  std::string own_words() const { return decision_.text.empty() ? "" : std::string{decision_.text} + "; "; }

  static std::string rate_text(double bytes_per_s) { return decimals(bytes_per_s / 1e6, 1) + " MB/s"; }

  static std::string servers_text(const event::ServersGiven& given) {
    if (given.given == 0) return "no I/O server and accesses its files directly";
    return number(given.given) + (given.given == 1 ? " I/O server (" : " I/O servers (") + given.servers + ")" +
           (given.shared ? ", shared with others" : "");
  }

  std::string none_up(const event::ServersGiven& given) const {
    const std::string where = given.file_system.empty() ? "" : " on its file system, " + given.file_system;
    return quoted(name_) + " gets no I/O server, because none is up" + where + "; epoch " + number(given.epoch);
  }

  // Returns the rule behind the number, as the end of a sentence.
  std::string by_rule(const event::ServersGiven& given) const {
    const std::string size =
        number(given.nodes) + (given.nodes == 1 ? " node" : " nodes") + " and " + processes_text(given.processes);
    const bool is_static = decision_.policy == "static";
    if (!given.fell_back)
      return " by " + std::string{decision_.policy} + " for " + size + (is_static ? on_system(given) : "");
    const std::string limit =
        std::isnan(given.least)
            ? "no allocation gives each application a server"
            : "no allocation leaves each application " + percent_text(given.least) + " of its bandwidth under static";
    return " by static for " + size + on_system(given) + ", because " + limit;
  }

  // Returns why an application that nobody has measured has its number, where the policy has not decided it.
  std::string by_default(const event::ServersGiven& given) const {
    if (given.fell_back || decision_.policy == "static" || std::isnan(given.system_nodes)) return {};
    return ", so the number is that of static" + on_system(given);
  }

  // Returns the system whose ratio of nodes to servers counted; "" if none did.
  static std::string on_system(const event::ServersGiven& given) {
    if (std::isnan(given.system_nodes) || std::isnan(given.system_servers)) return {};
    return " on a system of " + decimals(given.system_nodes, 0) + (given.system_nodes == 1 ? " node" : " nodes") +
           (given.nodes_assumed ? " (those of the present applications) and " : " and ") +
           decimals(given.system_servers, 0) + (given.system_servers == 1 ? " server" : " servers");
  }

  static std::string of_alone(const event::ServersGiven& given) {
    if (std::isnan(given.alone) || given.alone <= given.bandwidth || given.alone <= 0) return {};
    return ", " + percent_text(given.bandwidth / given.alone) + " of its best alone";
  }

  // Returns the values of the metric that were compared, as the end of a sentence; "" if there are none.
  // The application itself waits for nothing.
  std::string held(const event::AccessChoice& choice) const {
    const std::string& other = decision_.because_of;
    return "I/O servers hold what " + quoted(name_) + " wrote until it has its turn on " + choice.target +
           (choice.parts.empty() ? "" : " (" + choice.parts + ")") + (other.empty() ? "" : ", after " + quoted(other)) +
           costs(choice);
  }

  static std::string costs(const event::AccessChoice& choice) {
    if (choice.metric.empty()) return {};
    std::string text = "; " + choice.metric + ":";
    const char* between = " ";
    for (const auto& [action, value] :
         {std::pair{"wait", choice.wait}, std::pair{"delay", choice.delay}, std::pair{"interfere", choice.interfere},
          std::pair{"interrupt", choice.interrupt}}) {
      if (std::isnan(value)) continue;
      text.append(std::exchange(between, ", ")).append(action).append(" ").append(significant(value, 4));
    }
    return text;
  }

  static std::string bound(bool bounded) {
    return bounded ? "; more would make an application slower than most_slowdown allows" : "";
  }

  std::int64_t size() const { return decision_.wanted != 0 ? decision_.wanted : decision_.to; }
  std::string sizes() const { return " from " + number(decision_.from) + " to " + number(size()) + " processes"; }
  std::string goes() const { return name_ + " goes" + sizes() + ": "; }

  std::string named(std::string_view form) const {
    std::string text;
    for (const char c : form) {
      if (c == '@') {
        text += quoted(name_);
      } else if (c == '$') {
        text += name_;
      } else {
        text += c;
      }
    }
    return text;
  }

  const event::Decision& decision_;
  const std::string& name_;
};

}  // namespace

std::string phrase(const event::Reason& reason, const event::Decision& decision) {
  return std::visit(Phrases{decision}, reason);
}

std::string irregular_text(const std::string& application, double period_s, double spread_s) {
  return "the I/O phases of " + application + " come at no regular times: " + decimals(period_s, 1) +
         " s apart, with a standard deviation of " + decimals(spread_s, 1) + " s";
}

std::string sentence(const event::CoresExceeded& exceeded, const std::string& application) {
  const std::string used =
      exceeded.used == 0 ? "" : ", " + number(exceeded.used) + " of them used by other applications";
  return processes_text(exceeded.processes) + " for " + quoted(application) + " are too many: there are " +
         number(exceeded.cores) + " cores" + used + "; ask for fewer, or set 'cores' of [coordinator] in hocket.toml";
}

}  // namespace hocket::explain
