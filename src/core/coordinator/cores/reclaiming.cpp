// This part of Steering takes cores back from expanded applications, for applications that started without free ones.
#include <algorithm>

#include "coordinator/cores/steering.hpp"

namespace hocket::coordinator {
namespace {

// Returns the gain in speed by each core of the expansion, as a share of the application's speed before it.
double help_of(const model::Application& application, const SizeChange& layer) {
  const std::int64_t now = application.computing_processes();
  if (application.curve.empty() || layer.original < 1 || now <= layer.original) return 0;
  return (application.curve.speedup(layer.original, now) - 1) / static_cast<double>(now - layer.original);
}

}  // namespace

void Steering::reclaim(const Moment& moment) {
  std::int64_t missing = cores_.taken_beyond() > 0 ? cores_.taken_beyond() - coming_back() : 0;
  while (missing > 0) {
    const auto victim = choose_victim();
    if (victim == courses_.end()) break;
    model::Application& application = *cluster_.find(victim->first);
    Course& course = victim->second;
    const SizeChange& layer = course.top();
    const std::int64_t had = cores_.of(application.id);
    // An expansion that is not reached yet is taken back completely, so that no request under way can still grow it.
    const std::int64_t least = is_under_way(course.state) ? course.before : std::max(layer.original, had - missing);
    const std::int64_t to = course.is_passing() ? layer.original : least;
    tell(moment, application, layer.policy, "reclaim", to, event::CoresReclaimed{had - to, cores_.taken_beyond()});
    outcomes_.forget(application.id);
    course.goal = to;
    apply(moment, application, course, CourseInput::reclaim);
    missing -= had - to;
  }
  if (!starts_.empty()) starts_.answer(moment, coming_back());
}

// Returns the number of cores whose return is requested but not reported.
std::int64_t Steering::coming_back() const {
  std::int64_t sum = 0;
  for (const auto& [id, course] : courses_) {
    if (is_hurried(course.state)) sum += std::max<std::int64_t>(0, cores_.of(id) - course.goal);
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
    if (!has_effect(course.state, CourseInput::reclaim) || cores_.of(one->first) <= course.top().original) continue;
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
