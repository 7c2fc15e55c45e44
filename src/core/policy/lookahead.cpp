#include "policy/lookahead.hpp"

#include <algorithm>
#include <limits>

namespace hocket::policy {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double rounding_s = 1e-9;
constexpr int most_events = 2000;  // bounds the cost of one play

enum class PlayerState { computing, waiting, io };

struct Player {
  const Actor* actor;
  PlayerState state = PlayerState::computing;
  double left_s = 0;     // rest of its I/O phase, alone
  double begins_s = 0;   // computing: begin of its next phase
  double came = 0;       // when it began to wait: the order of service
  std::size_t next = 0;  // index of its next phase
  double lost_s = 0;
};

// Plays from event to event. An event is the begin or end of a phase.
class Play {
 public:
  Play(std::span<const Actor> actors, std::optional<std::size_t> goes);
  std::vector<double> run(double horizon_s);

 private:
  double slowdown(const Player& one, double users) const { return 1 + (one.actor->interference - 1) * (users - 1); }
  double users() const;
  double step(double horizon_s) const;
  void pass(double step_s);
  void begin_phases();
  void end_phases();
  void serve();
  void come(Player& one);
  void compute(Player& one);

  std::vector<Player> players_;
  double now_s_ = 0;
};

Play::Play(std::span<const Actor> actors, std::optional<std::size_t> goes) {
  for (std::size_t i = 0; i < actors.size(); ++i) {
    const Actor& actor = actors[i];
    Player one{&actor};
    one.left_s = actor.left_s;
    if (actor.left_s > 0) {
      one.state = actor.has || goes == i ? PlayerState::io : PlayerState::waiting;
      // Applications that wait already come before all later ones, in the order of the actors.
      one.came = -1 + 1e-6 * static_cast<double>(i);
    } else {
      one.begins_s = actor.phases.empty() ? never : actor.starts_in_s;
    }
    players_.push_back(one);
  }
}

double Play::users() const {
  return static_cast<double>(
      std::count_if(players_.begin(), players_.end(), [](const Player& one) { return one.state == PlayerState::io; }));
}

// Returns the seconds to the next event, at least `rounding_s` so that the play always advances.
double Play::step(double horizon_s) const {
  double step_s = horizon_s - now_s_;
  const double all = users();
  for (const Player& one : players_) {
    if (one.state == PlayerState::io) step_s = std::min(step_s, one.left_s * slowdown(one, all));
    if (one.state == PlayerState::computing && one.begins_s > now_s_) step_s = std::min(step_s, one.begins_s - now_s_);
  }
  return std::max(step_s, rounding_s);
}

// Lets time pass. A phase beside others makes less progress than time passes; the difference is lost.
void Play::pass(double step_s) {
  const double all = users();
  for (Player& one : players_) {
    if (one.state == PlayerState::waiting) one.lost_s += step_s;
    if (one.state != PlayerState::io) continue;
    const double done_s = step_s / slowdown(one, all);
    one.left_s -= done_s;
    one.lost_s += step_s - done_s;
  }
  now_s_ += step_s;
}

void Play::compute(Player& one) {
  one.state = PlayerState::computing;
  one.left_s = 0;
  one.begins_s = never;
  if (one.actor->phases.empty()) return;
  const Actor::Phase& phase = one.actor->phases[one.next];
  one.begins_s = now_s_ + phase.computing_s;
}

// Begins the actor's next phase. It waits if no holder has more left than the phase asks for. An application that waits
// counts as a tiny rest, so that the newcomer queues behind it.
void Play::come(Player& one) {
  const Actor::Phase& phase = one.actor->phases[one.next];
  one.next = (one.next + 1) % one.actor->phases.size();
  one.left_s = phase.size_s;
  one.came = now_s_;
  if (!(one.left_s > 0)) return compute(one);
  double most_s = 0;
  for (const Player& other : players_) {
    if (&other != &one && other.state == PlayerState::io) most_s = std::max(most_s, other.left_s);
    if (&other != &one && other.state == PlayerState::waiting) most_s = std::max(most_s, rounding_s);
  }
  const bool waits = most_s > 0 && most_s <= one.left_s;
  one.state = waits ? PlayerState::waiting : PlayerState::io;
  one.begins_s = never;
}

void Play::begin_phases() {
  for (Player& one : players_) {
    if (one.state == PlayerState::computing && one.begins_s <= now_s_ + rounding_s) come(one);
  }
}

void Play::end_phases() {
  for (Player& one : players_) {
    if (one.state == PlayerState::io && one.left_s <= rounding_s) compute(one);
  }
}

// Gives a free target to the application that came first.
void Play::serve() {
  if (users() > 0) return;
  Player* first = nullptr;
  for (Player& one : players_) {
    if (one.state == PlayerState::waiting && (first == nullptr || one.came < first->came)) first = &one;
  }
  if (first != nullptr) first->state = PlayerState::io;
}

std::vector<double> Play::run(double horizon_s) {
  begin_phases();
  serve();
  for (int events = 0; now_s_ < horizon_s - rounding_s && events < most_events; ++events) {
    pass(step(horizon_s));
    end_phases();
    begin_phases();
    serve();
  }
  std::vector<double> lost;
  for (const Player& one : players_) lost.push_back(one.lost_s);
  return lost;
}

}  // namespace

std::vector<double> lost_s(std::span<const Actor> actors, std::optional<std::size_t> goes, double horizon_s) {
  return Play{actors, goes}.run(horizon_s);
}

}  // namespace hocket::policy
