#include "sim/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "sim/clairvoyant.hpp"
#include "sim/simulation.hpp"

namespace hocket::sim {
namespace {

// Approximate budget of simulations for the beam search, and limit for the changes of single choices.
constexpr std::size_t beam_runs = 30'000;
constexpr std::size_t changing_runs = 30'000;
constexpr std::size_t most_width = 16;
constexpr double penalty = 10;     // cost of each second by which an application is slower than uncoordinated
constexpr double rounding = 1e-9;  // tolerance for rounding to nanoseconds, once for each operation
// Relative gain below which a schedule does not replace the best one.
constexpr double least_gain = 1e-9;

// The rules that continue a list of choices. Each suits another kind of workload.
constexpr std::array rules{
    Rule{Rule::NextChoice::everybody},
    Rule{Rule::NextChoice::those_with_room},
    Rule{Rule::NextChoice::first_come},
    Rule{Rule::NextChoice::first_come, true},
    Rule{Rule::NextChoice::shortest},
    Rule{Rule::NextChoice::shortest, true},
    Rule{Rule::NextChoice::shortest_interrupts},
    Rule{Rule::NextChoice::shortest_interrupts, true},
};

// The result of one simulated schedule.
struct ScheduleRun {
  Clairvoyant::Made made;
  double cost = std::numeric_limits<double>::infinity();  // I/O time with waits, plus the penalty
  bool allowed = true;                                    // true if no application is slower than uncoordinated
};

// The state of a search: the best schedule so far, and the number of simulations spent.
class ScheduleSearch {
 public:
  explicit ScheduleSearch(const Scenario& scenario)
      : scenario_(knowing(scenario)), uncoordinated_(Simulation{scenario_, nullptr}.run()) {
    for (const Rule& rule : rules) run({}, rule);  // `everybody` meets the constraint
  }

  SimulationReport report() {
    extend();
    change();
    Clairvoyant::Made made;
    return simulate(best_.made.choices, {}, made);
  }

  // Enumerates all schedules by counting: increments the last choice and carries to the one before.
  std::optional<double> all(std::size_t most_schedules) {
    Choices choices;
    for (std::size_t count = 0; count < most_schedules; ++count) {
      const ScheduleRun made = run(choices, {}, true);
      choices = made.made.choices;
      while (!choices.empty() && choices.back() + 1 >= made.made.options[choices.size() - 1]) choices.pop_back();
      if (choices.empty()) return best_.cost;
      ++choices.back();
    }
    return std::nullopt;
  }

 private:
  // Returns the scenario without a limit on waits, since giving up is a choice that no schedule would make.
  static Scenario knowing(Scenario scenario) {
    scenario.max_wait_s = 0;
    return scenario;
  }

  SimulationReport simulate(const Choices& choices, Rule rule, Clairvoyant::Made& made) const {
    return Simulation{scenario_, std::make_unique<Clairvoyant>(scenario_, choices, rule, made)}.run();
  }

  // Simulates a list of choices and keeps it if it is the best. If `first` is true, the first option follows the list
  // instead of the rule's choice.
  ScheduleRun run(const Choices& choices, Rule rule, bool first = false) {
    ++runs_;
    ScheduleRun made;
    if (first) {
      // 1024 zeros stand for "always the first option", so that counting visits every schedule once.
      Choices all = choices;
      all.resize(choices.size() + 1024, 0);
      value(made, simulate(all, rule, made.made));
    } else {
      value(made, simulate(choices, rule, made.made));
    }
    if (made.allowed && made.cost < best_.cost * (1 - least_gain)) best_ = made;
    return made;
  }

  // Sets the cost of a run. A schedule that slows an application keeps a finite cost, so the beam can still improve
  // it.
  void value(ScheduleRun& run, const SimulationReport& report) const {
    run.cost = io_with_waits(report);
    for (std::size_t i = 0; i < report.applications.size(); ++i) {
      const ApplicationResult& before = uncoordinated_.applications[i];
      const double allowed = before.total_s() + rounding * static_cast<double>(1 + before.operations);
      const double excess = report.applications[i].total_s() - allowed;
      if (!(excess > 0)) continue;
      run.allowed = false;
      run.cost += penalty * excess;
    }
  }

  // Extends lists of choices breadth first and keeps the cheapest ones of each length.
  void extend() {
    const std::size_t depth = std::max<std::size_t>(1, best_.made.choices.size());
    // Simulations for one list, if a choice has about three options.
    const std::size_t each = depth * rules.size() * 3;
    const std::size_t width = std::clamp<std::size_t>(beam_runs / each, 1, most_width);
    // One list in the beam, with the cost of its best continuation.
    struct BeamNode {
      Choices choices;
      std::size_t options = 0;  // options of the next choice
      double cost = 0;
    };
    std::vector<BeamNode> nodes{{{}, best_.made.options.empty() ? 0U : best_.made.options.front(), best_.cost}};
    while (!nodes.empty() && runs_ < 2 * beam_runs) {
      std::vector<BeamNode> next;
      for (const BeamNode& node : nodes) {
        for (std::size_t option = 0; option < node.options; ++option) {
          BeamNode child{node.choices, 0, std::numeric_limits<double>::infinity()};
          child.choices.push_back(static_cast<std::uint16_t>(option));
          bool others = false;  // true if the simulation replaced the option, because it would have stopped everything
          for (const Rule& rule : rules) {
            const ScheduleRun made = run(child.choices, rule);
            const std::size_t at = child.choices.size();
            others |= made.made.choices.size() < at || made.made.choices[at - 1] != option;
            child.cost = std::min(child.cost, made.cost);
            if (made.made.options.size() > at) child.options = made.made.options[at];
          }
          if (!others && child.options > 0) next.push_back(std::move(child));
        }
      }
      const std::size_t kept = std::min(width, next.size());
      const auto cheaper = [](const BeamNode& a, const BeamNode& b) { return a.cost < b.cost; };
      std::stable_sort(next.begin(), next.end(), cheaper);
      next.resize(kept);
      nodes = std::move(next);
    }
  }

  // Changes single choices of the best list. The other choices stay, and the default rule continues after them.
  void change() {
    const std::size_t last = runs_ + changing_runs;
    for (bool better = true; better && runs_ < last;) {
      const ScheduleRun base = best_;
      for (std::size_t at = 0; at < base.made.choices.size() && runs_ < last; ++at) {
        for (std::size_t option = 0; option < base.made.options[at]; ++option) {
          if (option == base.made.choices[at]) continue;
          Choices choices = base.made.choices;
          choices[at] = static_cast<std::uint16_t>(option);
          run(choices, {});
          // Try without the next choice too: its occasion may have disappeared.
          if (at + 1 < choices.size()) {
            choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(at) + 1);
            run(choices, {});
          }
        }
      }
      better = best_.cost < base.cost;
    }
  }

  Scenario scenario_;
  SimulationReport uncoordinated_;
  ScheduleRun best_;
  std::size_t runs_ = 0;
};

}  // namespace

double io_with_waits(const SimulationReport& report) {
  double sum = 0;
  for (const ApplicationResult& one : report.applications) sum += one.io_s + one.wait_s;
  return sum;
}

Result<SimulationReport> best_schedule(const Scenario& scenario) {
  if (scenario.applications.size() > most_searched) {
    return Error{
        fmt::format("the best schedule is searched for {} applications at most, and '{}' has {}: leave some out",
                    most_searched, scenario.name, scenario.applications.size())};
  }
  const auto has_parts = [](const TargetSpec& target) { return !target.parts.empty(); };
  if (std::ranges::any_of(scenario.targets, has_parts)) {
    return Error{fmt::format(
        "the best schedule is not searched where targets have parts, as in '{}': leave out 'parts'", scenario.name)};
  }
  const auto has_servers = [](const ApplicationSpec& application) {
    return application.request_bytes > 0 || !application.bandwidths.empty();
  };
  if (std::ranges::any_of(scenario.applications, has_servers)) {
    return Error{
        fmt::format("the best schedule is not searched through I/O servers, as in '{}': leave out "
                    "'request_bytes' and 'bandwidth_mb_s'",
                    scenario.name)};
  }
  if (scenario.fifo) {
    return Error{fmt::format("the best schedule is not searched of a strict queue, as in '{}': leave out 'fifo'",
                             scenario.name)};
  }
  return ScheduleSearch{scenario}.report();
}

Result<double> least_of_all_schedules(const Scenario& scenario, std::size_t most_schedules) {
  const auto least = ScheduleSearch{scenario}.all(most_schedules);
  if (!least) return Error{fmt::format("'{}' has more than {} schedules", scenario.name, most_schedules)};
  return *least;
}

}  // namespace hocket::sim
