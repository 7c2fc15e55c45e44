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

// Simulations of the beam search, about, and of the changes of single choices, at most.
constexpr std::size_t beam_runs = 30'000;
constexpr std::size_t changing_runs = 30'000;
constexpr std::size_t most_width = 16;
constexpr double penalty = 10;     // for each second by which an application is slower than uncoordinated
constexpr double rounding = 1e-9;  // of a time; as nanoseconds, once for each operation
constexpr double least_gain = 1e-9;

constexpr std::array rules{
    Rule{Rule::Next::everybody},
    Rule{Rule::Next::those_with_room},
    Rule{Rule::Next::first_come},
    Rule{Rule::Next::first_come, true},
    Rule{Rule::Next::shortest},
    Rule{Rule::Next::shortest, true},
    Rule{Rule::Next::shortest_interrupts},
    Rule{Rule::Next::shortest_interrupts, true},
};

struct Run {
  Clairvoyant::Made made;
  double cost = std::numeric_limits<double>::infinity();  // with the penalty
  bool allowed = true;                                    // no application is slower than uncoordinated
};

class Search {
 public:
  explicit Search(const Scenario& scenario)
      : scenario_(knowing(scenario)), uncoordinated_(Simulation{scenario_, nullptr}.run()) {
    for (const Rule& rule : rules) run({}, rule);  // `everybody` is within the constraint
  }

  Report report() {
    extend();
    change();
    Clairvoyant::Made made;
    return simulate(best_.made.choices, {}, made);
  }

  // By counting up the choices, from the last one on.
  std::optional<double> all(std::size_t most_schedules) {
    Choices choices;
    for (std::size_t count = 0; count < most_schedules; ++count) {
      const Run made = run(choices, {}, true);
      choices = made.made.choices;
      while (!choices.empty() && choices.back() + 1 >= made.made.options[choices.size() - 1]) choices.pop_back();
      if (choices.empty()) return best_.cost;
      ++choices.back();
    }
    return std::nullopt;
  }

 private:
  // Nobody gives a wait up, and everybody tells all.
  static Scenario knowing(Scenario scenario) {
    scenario.max_wait_s = 0;
    return scenario;
  }

  Report simulate(const Choices& choices, Rule rule, Clairvoyant::Made& made) const {
    return Simulation{scenario_, std::make_unique<Clairvoyant>(scenario_, choices, rule, made)}.run();
  }

  // `first`: with the first option after the list instead of the rule's.
  Run run(const Choices& choices, Rule rule, bool first = false) {
    ++runs_;
    Run made;
    if (first) {
      Choices all = choices;
      all.resize(choices.size() + 1024, 0);
      value(made, simulate(all, rule, made.made));
    } else {
      value(made, simulate(choices, rule, made.made));
    }
    if (made.allowed && made.cost < best_.cost * (1 - least_gain)) best_ = made;
    return made;
  }

  void value(Run& run, const Report& report) const {
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

  // The beam search.
  void extend() {
    const std::size_t depth = std::max<std::size_t>(1, best_.made.choices.size());
    const std::size_t each = depth * rules.size() * 3;  // options that a choice has, about
    const std::size_t width = std::clamp<std::size_t>(beam_runs / each, 1, most_width);
    struct Node {
      Choices choices;
      std::size_t options = 0;  // of the next choice
      double cost = 0;
    };
    std::vector<Node> nodes{{{}, best_.made.options.empty() ? 0U : best_.made.options.front(), best_.cost}};
    while (!nodes.empty() && runs_ < 2 * beam_runs) {
      std::vector<Node> next;
      for (const Node& node : nodes) {
        for (std::size_t option = 0; option < node.options; ++option) {
          Node child{node.choices, 0, std::numeric_limits<double>::infinity()};
          child.choices.push_back(static_cast<std::uint16_t>(option));
          bool others = false;  // another choice was carried out: it would have come to a standstill
          for (const Rule& rule : rules) {
            const Run made = run(child.choices, rule);
            const std::size_t at = child.choices.size();
            others |= made.made.choices.size() < at || made.made.choices[at - 1] != option;
            child.cost = std::min(child.cost, made.cost);
            if (made.made.options.size() > at) child.options = made.made.options[at];
          }
          if (!others && child.options > 0) next.push_back(std::move(child));
        }
      }
      const std::size_t kept = std::min(width, next.size());
      const auto cheaper = [](const Node& a, const Node& b) { return a.cost < b.cost; };
      std::stable_sort(next.begin(), next.end(), cheaper);
      next.resize(kept);
      nodes = std::move(next);
    }
  }

  // Single choices of the best list, the others being kept, or followed by a rule.
  void change() {
    const std::size_t last = runs_ + changing_runs;
    for (bool better = true; better && runs_ < last;) {
      const Run base = best_;
      for (std::size_t at = 0; at < base.made.choices.size() && runs_ < last; ++at) {
        for (std::size_t option = 0; option < base.made.options[at]; ++option) {
          if (option == base.made.choices[at]) continue;
          Choices choices = base.made.choices;
          choices[at] = static_cast<std::uint16_t>(option);
          run(choices, {});
          // Without the next one too: what it was about may be over.
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
  Report uncoordinated_;
  Run best_;
  std::size_t runs_ = 0;
};

}  // namespace

double io_with_waits(const Report& report) {
  double sum = 0;
  for (const ApplicationResult& one : report.applications) sum += one.io_s + one.wait_s;
  return sum;
}

Result<Report> best_schedule(const Scenario& scenario) {
  if (scenario.applications.size() > most_searched) {
    return Error{
        fmt::format("the best schedule is searched for {} applications at most, and '{}' has {}: leave some out",
                    most_searched, scenario.name, scenario.applications.size())};
  }
  return Search{scenario}.report();
}

Result<double> least_of_all_schedules(const Scenario& scenario, std::size_t most_schedules) {
  const auto least = Search{scenario}.all(most_schedules);
  if (!least) return Error{fmt::format("'{}' has more than {} schedules", scenario.name, most_schedules)};
  return *least;
}

}  // namespace hocket::sim
