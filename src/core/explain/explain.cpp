#include "explain/explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/saturating.hpp"
#include "explain/phrases.hpp"
#include "explain/words.hpp"

namespace hocket::explain {
namespace {

// The coordinator itself decides under this policy name, to learn an application's times.
constexpr std::string_view measuring = "probe";
// Smaller errors show as no difference.
constexpr double same_s = 0.005;

// A name in events, and its words.
using NameAndWords = std::pair<std::string_view, std::string_view>;

// An action about access in words: `beside` precedes another application's name, and `alone` stands without one.
struct Doing {
  std::string_view action;
  std::string_view beside;
  std::string_view alone;
};
constexpr std::array<Doing, 14> access_actions{
    {{"interrupt", "interrupts", "goes first"},
     {"wait", "waits for", "waits"},
     {"hold", "has I/O servers hold data because of", "has I/O servers hold data"},
     {"interfere", "goes on beside", "goes on at once"},
     {"delay", "begins later because of", "begins later"},
     {"deadlock", "breaks a deadlock with", "goes on at once"},
     {"resume", "goes on after", "goes on"},
     {"estimate", "ended beside", "ended"},
     {"doubt", "did other I/O than announced beside", "did other I/O than announced"},
     {"ignore", "is not believed beside", "is not believed any more"},
     {"believe", "is believed again beside", "is believed again"},
     {"wrong", "gave wrong information beside", "gave wrong information"},
     {"whole", "uses a whole target beside", "uses a whole target"},
     {"held", "asks for another target than it named beside", "asks for another target than it named"}}};
constexpr std::array<NameAndWords, 14> core_actions{{{"expand", "expands"},
                                                     {"shrink", "shrinks"},
                                                     {"return", "goes back"},
                                                     {"reclaim", "gives cores back"},
                                                     {"cancel", "is left as it is"},
                                                     {"leave", "is left alone"},
                                                     {"drain", "leaves the server map"},
                                                     {"add", "enters the server map again"},
                                                     {"assign", "gets other I/O servers"},
                                                     {"weigh", "gets another share of the stripes"},
                                                     {"tune", "gets other settings of its collective I/O"},
                                                     {"schedule", "orders accesses by another scheduler"},
                                                     {"weigh-application", "gets another weight in I/O servers"},
                                                     {"aggregate", "aggregates by other ranks"}}};
constexpr std::array<NameAndWords, 3> quantities{{{event::quantity::phase_start, "start of the next I/O phase"},
                                                  {event::quantity::period, "I/O period"},
                                                  {event::quantity::cores, "cores"}}};

// Returns the words for a name; the name itself if it is unknown, for example of a later version.
template <std::size_t N>
std::string_view words_for(const std::array<NameAndWords, N>& all, std::string_view name) {
  const auto* const known =
      std::find_if(all.begin(), all.end(), [&](const NameAndWords& one) { return one.first == name; });
  return known == all.end() ? name : known->second;
}

// True if processes were asked to come or go.
bool changes(const event::Decision& decision) {
  const std::string& action = decision.action;
  const bool resizes = action == "expand" || action == "shrink" || action == "return" || action == "reclaim";
  return resizes && decision.from != decision.to;
}

// Subtracts in double, because a trace may hold any times.
double seconds_between(Time from, Time to) {
  return (static_cast<double>(to_ns(to)) - static_cast<double>(to_ns(from))) * 1e-9;
}

std::string at(Time time, Time zero) { return seconds_text(seconds_between(zero, time)); }

std::string predicted(const event::Decision& decision, Time zero) {
  const std::string other = decision.because_of.empty() ? "" : " and " + decision.because_of;
  return "the I/O phases of " + decision.decided_for + other + " meet at " + at(decision.conflict, zero) + ", for " +
         seconds_text(to_s(decision.overlap));
}

std::string chosen(const event::Decision& decision, Time zero) {
  const std::string when = decision.at_iteration != 0 ? "from iteration " + number(decision.at_iteration) + " on"
                                                      : std::string{"at the next control point"};
  std::string back = "for good";
  if (decision.return_at_iteration != 0) {
    back = number(decision.from) + " again at iteration " + number(decision.return_at_iteration);
  }
  if (decision.policy == measuring) back = number(decision.from) + " again when it is measured";
  std::string text = number(decision.to) + " processes " + when + ", " + back;
  if (decision.start_before != Time{} && decision.start_after != Time{}) {
    text += "; its next I/O phase begins at " + at(decision.start_after, zero) + " instead of " +
            at(decision.start_before, zero);
  }
  if (decision.period_after != Duration{}) {
    text += "; its I/O period becomes " + seconds_text(to_s(decision.period_after));
  }
  return text;
}

std::string cost(const event::Decision& decision, const Consequences& consequences) {
  const auto count = static_cast<std::int64_t>(consequences.stopped.size());
  double stopped_s = 0;
  for (const Duration one : consequences.stopped) stopped_s += to_s(one);
  const std::string stood =
      "stood still " + decimals(stopped_s, 3) + " s in " + number(count) + (count == 1 ? " resize" : " resizes");
  if (decision.to <= decision.from || consequences.until <= consequences.decided) return stood;
  return cores_text(saturating_difference(decision.to, decision.from)) + " for " +
         seconds_text(seconds_between(consequences.decided, consequences.until)) + "; " + stood;
}

bool is_prediction(const event::Outcome& outcome) { return outcome.quantity != event::quantity::cores; }

std::string cores_back(const event::Outcome& outcome) {
  std::string text = decimals(outcome.actual_s, 0);
  if (outcome.actual_s != outcome.predicted_s) text += " of " + decimals(outcome.predicted_s, 0);
  text += " came back";
  if (outcome.how == "ended") text += ", for " + quoted(outcome.decided_for) + " ended";
  if (outcome.how == "returned") {
    text +=
        ": " + quoted(outcome.decided_for) + " has " + processes_text(outcome.processes) + ", as before the decision";
  }
  return text;
}

std::string judgement(const event::Outcome& outcome) {
  if (outcome.met) return "within what was assumed";
  if (std::abs(outcome.actual_s - outcome.predicted_s) <= outcome.uncertainty_s) {
    return "off: what was assumed is too wide to predict anything";
  }
  return "outside of what was assumed: the prediction was off";
}

std::string milliseconds_text(Duration d) { return decimals(static_cast<double>(d.count()) / 1e6, 3) + " ms"; }

}  // namespace

std::string heading(const event::Decision& decision) {
  for (const Doing& doing : access_actions) {
    if (doing.action != decision.action) continue;
    const std::string name = decision.decided_for + " ";
    if (decision.because_of.empty()) return name + std::string{doing.alone};
    return name + std::string{doing.beside} + " " + decision.because_of;
  }
  std::string text = decision.decided_for + " ";
  text += words_for(core_actions, decision.action);
  if (changes(decision)) {
    text += " from " + number(decision.from) + " to " + number(decision.to) + " processes";
  }
  if (!decision.because_of.empty()) text += " because of " + decision.because_of;
  return text;
}

std::string sentence(const event::Decision& decision) {
  std::string text = is_none(decision.reason) ? std::string{decision.text} : phrase(decision.reason, decision);
  if (is_none(decision.obstacle)) return text;
  const bool given_up = std::holds_alternative<event::GivenUp>(decision.reason);
  if (!text.empty()) text += given_up ? ": " : "; ";
  return text + (given_up ? "" : "left alone: ") + phrase(decision.obstacle, decision);
}

std::vector<Line> lines(const event::Decision& decision, const Consequences& consequences, Time zero) {
  std::vector<Line> found;
  if (decision.conflict != Time{}) found.push_back({"predicted", predicted(decision, zero)});
  if (changes(decision)) {
    found.push_back({"chosen", chosen(decision, zero)});
    if (!consequences.stopped.empty()) found.push_back({"cost", cost(decision, consequences)});
  }
  if (std::string words = sentence(decision); !words.empty()) found.push_back({"in its words", std::move(words)});
  return found;
}

std::string_view subject(const event::Outcome& outcome) { return words_for(quantities, outcome.quantity); }

std::string brief(const event::Outcome& outcome) {
  if (!is_prediction(outcome)) return decimals(outcome.actual_s, 0) + " came back";
  if (outcome.how == "missing") return "not come after " + seconds_text(outcome.actual_s);
  const double error_s = outcome.actual_s - outcome.predicted_s;
  if (std::abs(error_s) < same_s) return "as predicted";
  const bool is_start = outcome.quantity == event::quantity::phase_start;
  const char* way = is_start ? (error_s > 0 ? "later" : "earlier") : (error_s > 0 ? "more" : "less");
  return seconds_text(std::abs(error_s)) + " " + way + " than predicted";
}

std::string sentence(const event::Outcome& outcome) {
  std::string text = std::string{subject(outcome)} + ": ";
  if (!is_prediction(outcome)) return text + cores_back(outcome);
  text += "predicted " + seconds_text(outcome.predicted_s);
  if (outcome.how == "missing") return text + ", " + brief(outcome) + ": the prediction was off";
  if (outcome.uncertainty_s >= 0) text += " ± " + seconds_text(outcome.uncertainty_s);
  text += ", came " + seconds_text(outcome.actual_s) + ": " + brief(outcome);
  if (outcome.period_s > 0) {
    const double share = std::abs(outcome.actual_s - outcome.predicted_s) / outcome.period_s;
    text += " (" + decimals(share * 100, 0) + "% of the I/O period)";
  }
  return text + ", " + judgement(outcome);
}

std::string sentence(const event::Model& model) {
  if (!model.text.empty()) return model.text;
  if (model.model == "irregular") {
    return irregular_text(model.application, to_s(model.period), to_s(model.period_spread));
  }
  return "the I/O phases of " + model.application + " come at regular times again";
}

std::string sentence(const event::SlowIoServer& slow) {
  const std::string found = slow.reports > 0 ? slow.server + " takes " + milliseconds_text(slow.service) +
                                                   " for an operation, its peers " + milliseconds_text(slow.peers)
                                             : "a monitor says that " + slow.server + " is slow";
  return found + ": out of the map, and tried again in " + seconds_text(to_s(slow.hold_off));
}

std::string sentence(const event::HungIoServer& hung) {
  return "the I/O server " + hung.server + " (process " + number(hung.pid) + ") has sent no heartbeat for " +
         seconds_text(to_s(hung.silent)) + ": it is killed, and leaves the map when it has ended";
}

}  // namespace hocket::explain
