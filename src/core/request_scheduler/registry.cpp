#include <limits>
#include <string>

#include "base/nearest.hpp"
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

constexpr AlgorithmEntry known[] = {
    {"fifo", make_fifo},
    {"sjf", make_sjf},
    {"to-agg", make_to_agg},
    {"aioli", make_aioli},
    {"mlf", make_mlf},
    {"hbrr", make_hbrr},
    {"twins", make_twins},
    {"wfq", make_wfq},
    {"job-fair", make_job_fair},
    {"user-fair", make_user_fair},
    {"size-fair", make_size_fair},
    {"user-job-fair", make_user_job_fair},
    {"user-size-fair", make_user_size_fair},
};

// The range of a setting.
struct Bound {
  const char* name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

// Returns what is wrong with the settings, if anything is.
std::optional<Error> fault_of(const SchedulerSettings& settings) {
  const Bound bounds[] = {
      {"most_bytes", settings.most_bytes, 1},
      {"most_requests", static_cast<std::int64_t>(settings.most_requests), 1},
      {"most_read_gap", settings.most_read_gap, 0},
      {"most_wait", settings.most_wait.count(), 1},
      {"aggregation_wait", settings.aggregation_wait.count(), 0},
      {"aioli_quantum", settings.aioli_quantum, 1},
      {"mlf_quantum", settings.mlf_quantum, 1},
      {"hbrr_quantum", static_cast<std::int64_t>(settings.hbrr_quantum), 1},
      {"twins_window", settings.twins_window.count(), 1},
      {"twins_servers", settings.twins_servers, 0, most_data_servers},
      {"twins_stripe", settings.twins_stripe, 1},
      {"twins_first", settings.twins_first, 0},
      {"request_cost", settings.request_cost, 0},
  };
  for (const Bound& bound : bounds) {
    const bool too_small = bound.value < bound.least;
    if (!too_small && bound.value <= bound.most) continue;
    return Error{std::string{"invalid "} + bound.name + " " + std::to_string(bound.value) + ": must be at " +
                 (too_small ? "least " : "most ") + std::to_string(too_small ? bound.least : bound.most)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const AlgorithmEntry& entry : known) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<Algorithm>> make_algorithm(std::string_view name, const SchedulerSettings& settings) {
  if (auto fault = fault_of(settings)) return *fault;
  for (const AlgorithmEntry& entry : known) {
    if (entry.name == name) return entry.make(settings);
  }
  const std::vector<std::string_view> names = algorithm_names();
  std::string all;
  for (const std::string_view one : names) all.append(all.empty() ? "" : ", ").append(one);
  return Error{"unknown request scheduler '" + std::string{name} + "': did you mean '" +
               std::string{nearest(name, names)} + "'? there are: " + all};
}

}  // namespace hocket::request_scheduler
