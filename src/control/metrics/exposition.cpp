#include "metrics/exposition.hpp"

#include <charconv>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <utility>

namespace hocket::metrics {
namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Writes one metric after the other: its HELP and TYPE, then its samples. The format wants all samples of a metric in
// one group.
class Page {
 public:
  // Begins a metric. `help` has neither line ends nor backslashes.
  Page& metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
    text_.append(name).append(" ").append(type).append("\n");
    return *this;
  }
  Page& gauge(std::string_view name, std::string_view help) { return metric(name, "gauge", help); }
  Page& counter(std::string_view name, std::string_view help) { return metric(name, "counter", help); }

  void sample(std::integral auto value, Labels labels = {}) { line({}, labels, std::to_string(value)); }
  void sample(double value, Labels labels = {}) { line({}, labels, number(value)); }

  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    metric(name, "histogram", help);
    std::int64_t cumulative = 0;
    for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
      cumulative += histogram.counts()[i];
      const bool bounded = i < histogram.bounds_s().size();
      line("_bucket", {{"le", bounded ? number(histogram.bounds_s()[i]) : "+Inf"}}, std::to_string(cumulative));
    }
    line("_sum", {}, number(histogram.sum_s()));
    line("_count", {}, std::to_string(cumulative));
  }

  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view value) {
    text_.append(name_).append(suffix);
    char before = '{';
    for (const auto& [label, label_value] : labels) {
      text_.append(1, before).append(label).append("=\"").append(escaped(label_value)).append("\"");
      before = ',';
    }
    text_.append(labels.size() == 0 ? "" : "}").append(" ").append(value).append("\n");
  }

  std::string name_;
  std::string text_;
};

void write_state(const Facts& facts, Page& page) {
  page.gauge("hocket_build_info", "Always 1. The label has the version of hocketd.")
      .sample(1, {{"version", facts.version}});
  page.gauge("hocket_policy_info", "Always 1. The label has the policies in force.")
      .sample(1, {{"policy", facts.policy}});
  page.gauge("hocket_start_time_seconds", "Time at which hocketd started, in seconds since 1970.")
      .sample(facts.started_s);
  page.gauge("hocket_applications", "Applications that run.").sample(facts.applications);
  page.gauge("hocket_members", "Members that are connected: processes of applications.").sample(facts.members);
  page.gauge("hocket_connections", "Connections of members and of tools.").sample(facts.connections);
  page.gauge("hocket_agents", "Agents of other nodes that are connected.").sample(facts.agents);
  page.gauge("hocket_io_servers", "I/O servers, by state.");
  for (const ServersInState& one : facts.servers) page.sample(one.servers, {{"state", one.state}});
  page.gauge("hocket_waiting_requests", "Requests that wait for a grant, by target.");
  for (const auto& [target, requests] : facts.requests) page.sample(requests.waiting, {{"target", target}});
  page.gauge("hocket_granted_requests", "Requests that have a grant, by target.");
  for (const auto& [target, requests] : facts.requests) page.sample(requests.granted, {{"target", target}});
}

void write_counts(const Counts& counts, Page& page) {
  page.counter("hocket_events_total", "Events that the coordinator has handled, by type.");
  for (const auto& [type, events] : counts.events) page.sample(events, {{"type", type}});
  page.counter("hocket_grants_total", "Grants, by target.");
  for (const auto& [target, counted] : counts.targets) page.sample(counted.grants, {{"target", target}});
  page.histogram("hocket_grant_wait_seconds", "Time that granted requests had waited.", counts.grant_waits);
  page.counter("hocket_lease_ends_total", "Grants that were revoked because their lease was not renewed.")
      .sample(counts.lease_ends);
  page.counter("hocket_pauses_total", "Requests to stop in the middle of an access (PAUSE_IO).").sample(counts.pauses);
  page.counter("hocket_refused_total", "Requests that the coordinator refused (REFUSED).").sample(counts.refused);
  page.counter("hocket_io_seconds_total", "Time in I/O of the processes that report I/O phases, by target.");
  for (const auto& [target, counted] : counts.targets) page.sample(counted.io_s, {{"target", target}});
  page.counter("hocket_wait_seconds_total",
               "Time of waiting for grants of the processes that report I/O phases, by target.");
  for (const auto& [target, counted] : counts.targets) page.sample(counted.wait_s, {{"target", target}});
}

void write_decisions(const Counts& counts, Page& page) {
  page.counter("hocket_decisions_total", "Decisions that were published (DECISION), by action.");
  for (const auto& [action, decisions] : counts.decisions) page.sample(decisions, {{"action", action}});
  page.counter("hocket_outcomes_total", "Predictions that were compared with what came (OUTCOME).");
  for (const auto& [outcome, times] : counts.outcomes) {
    page.sample(times, {{"quantity", outcome.first}, {"met", outcome.second ? "true" : "false"}});
  }
  page.counter("hocket_estimates_total",
               "Applications that have left, and for which the effect of coordination was estimated.")
      .sample(counts.estimates);
  page.counter("hocket_saved_seconds_total", "Time that coordination has saved these applications, estimated.")
      .sample(counts.saved_s);
  page.counter("hocket_lost_seconds_total", "Time that coordination has cost these applications, estimated.")
      .sample(counts.lost_s);
}

}  // namespace

std::string escaped(std::string_view label_value) {
  std::string out;
  out.reserve(label_value.size());
  for (const char c : to_utf8(label_value)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string exposition(const Facts& facts) {
  Page page;
  write_state(facts, page);
  write_counts(facts.counted, page);
  write_decisions(facts.counted, page);
  page.gauge("hocket_trace_broken", "1 if the trace could not be written any more, else 0.")
      .sample(facts.trace_broken ? 1 : 0);
  page.histogram("hocket_loop_seconds",
                 "Time of one pass of the leader's loop, from the arrival of events to the next wait.", facts.loop);
  page.gauge("hocket_loop_longest_seconds", "The longest such pass of the last one to two minutes.")
      .sample(to_s(facts.loop_longest));
  return page.take();
}

}  // namespace hocket::metrics
