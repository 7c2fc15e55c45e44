// This part of Steering takes cores back from expanded applications, for applications that started without free ones.
#include <algorithm>

#include "coordinator/steering.hpp"
#include "coordinator/words.hpp"

namespace hocket::coordinator {
namespace {

// Returns the gain in speed by each core of the expansion, as a share of the application's speed before it.
double help_of(const model::Application& application, const Layer& layer) {
  const std::int64_t now = application.computing_processes();
  if (application.curve.empty() || layer.original < 1 || now <= layer.original) return 0;
  return (application.curve.speedup(layer.original, now) - 1) / static_cast<double>(now - layer.original);
}

}  // namespace

void Steering::reclaim(const Moment& moment) {
  std::int64_t missing = cores_.taken_beyond() > 0 ? cores_.taken_beyond() - coming_back() : 0;
  while (missing > 0) {
    const auto victim = choose_victim();
    if (victim == courses_.end()) return;
    model::Application& application = *cluster_.find(victim->first);
    Course& course = victim->second;
    const Layer& layer = course.top();
    const std::int64_t had = cores_.of(application.id);
    // An expansion that is not reached yet is taken back completely, so that no request under way can still grow it.
    const std::int64_t least = course.stage == Stage::going ? course.before : std::max(layer.original, had - missing);
    const std::int64_t to = course.is_passing() ? layer.original : least;
    tell(moment, application, layer.policy, "reclaim", to,
         quoted(application.name) + " gives back " + cores_text(had - to) + ": others were started that need " +
             number(cores_.taken_beyond()) + " more than there are");
    outcomes_.forget(application.id);
    course.hurried = true;
    course.goal = to;
    go_back(moment, application, course, 0);
    missing -= had - to;
  }
}

// Returns the number of cores whose return is requested but not reported.
std::int64_t Steering::coming_back() const {
  std::int64_t sum = 0;
  for (const auto& [id, course] : courses_) {
    if (course.hurried) sum += std::max<std::int64_t>(0, cores_.of(id) - course.goal);
  }
  return sum;
}

// Temporary expansions come first, then those whose cores help least, the latest first among equals.
Steering::Courses::iterator Steering::choose_victim() {
  auto victim = courses_.end();
  double least = 0;
  for (auto one = courses_.begin(); one != courses_.end(); ++one) {
    const Course& course = one->second;
    const model::Application* application = cluster_.find(one->first);
    if (course.hurried || course.stage == Stage::awaited || cores_.of(one->first) <= course.top().original) continue;
    const double help = course.is_passing() ? -1 : help_of(*application, course.lasting);
    const bool better = victim == courses_.end() || help < least ||
                        (help == least && course.top().decision > victim->second.top().decision);
    if (!better) continue;
    victim = one;
    least = help;
  }
  return victim;
}

}  // namespace hocket::coordinator
