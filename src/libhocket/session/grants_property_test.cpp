// Runs the client's half of the protocol of grants (request_standings.hpp) against the coordinator, which applies the
// other half (coordinator/arbitration/request_states.hpp). Thousands of random runs delay messages, end connections,
// and let time limits pass. Every history ends, no grant is lost or used twice, and every wait is bounded.
//
// While an application is alone, it has delegations: requests begin without a grant, and are reported in batches.
//
// The client of this test has no threads or sockets. It feeds inputs into the table as Session does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/arbitration/ledger.hpp"
#include "coordinator/arbitration/places.hpp"
#include "session/grants_testing.hpp"
#include "session/request_standings.hpp"
#include "session/request_standings_testing.hpp"

namespace hocket::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using testing::has;
using testing::name_of;
using testing::Network;
using testing::Random;
using testing::Sent;

constexpr Duration lease = seconds{1};
constexpr Duration keep_alive = milliseconds{500};
// The time limits of the client (HOCKET_ANSWER_S, HOCKET_MAX_WAIT_S).
constexpr Duration answer_limit = milliseconds{1500};
constexpr Duration wait_limit = milliseconds{2500};
// The bound on a wait if nothing is late: all others have their turns before.
constexpr Duration calm_limit = seconds{60};

// A policy that lets two applications have the target, each with half of it. If a third one waits, it preempts the
// first.
policy::AccessDecision halves(const policy::View& view, const event::Event&) {
  policy::AccessDecision decision;
  std::set<AppId> having;
  for (const model::Holder& holder : view.target.holders) having.insert(holder.application->id);
  for (const model::Request& request : view.target.waiting) {
    if (having.size() >= 2 && !having.contains(request.application)) continue;
    having.insert(request.application);
    decision.grants.push_back({request.member, request.id});
  }
  const bool waits = decision.grants.size() < view.target.waiting.size();
  if (waits && !view.target.holders.empty()) {
    decision.interruptions.push_back(view.target.holders.front().application->id);
  }
  for (const AppId id : having) decision.shares.push_back({id, 1 / static_cast<double>(having.size())});
  return decision;
}
const policy::Policy two_at_once{"halves", "two at once", halves, true};

struct Weather {
  const policy::Policy* policy;
  bool exclusive;  // the policy lets one application at a time have the target
  bool calm;       // nothing is late or lost, and the client sets no time limits
};

// The combinations of the table that the runs have met.
using Met = std::set<std::pair<Standing, StandingInput>>;

struct Asked {
  Standing standing = Standing::none;
  bool io_step = false;
  bool awaited = false;  // a thread waits for the grant
  bool used = false;
  bool held = false;             // the lease is renewed
  std::uint64_t delegation = 0;  // under which it was begun; 0: with a grant of its own
  bool delegated = false;        // the delegation was not recalled
  MemberId connection;
  Time since{};
  Time heard{};
  Time renew{};
  int offers = 0;
};

// A thread of a program. It does one operation, or one step, after the other.
struct Worker {
  bool io_step = false;
  int left = 0;               // operations to be done
  std::uint64_t request = 0;  // 0: none
  Time next{};                // when it acts again
  Time end{};                 // of the present operation, if it was begun
};

struct Client {
  std::string job;
  Connection* connection = nullptr;  // nullptr: the client knows that it has none
  std::map<std::uint64_t, Asked> requests;
  std::set<std::uint64_t> delegations;
  std::set<std::uint64_t> returned;  // delegations that were recalled on this connection
  std::vector<Sent> batch;           // with the times at which the messages came into being
  Time flush = Time::max();
  std::uint64_t last = 0;
  std::vector<Worker> workers;
  bool has_left = false;
};

class PairOfHistories {
 public:
  PairOfHistories(const Weather& weather, std::uint64_t seed, Met& met)
      : weather_(weather), met_(met), random_(seed), network_(settings(weather), weather.calm, random_) {
    clients_.resize(2 + pick(3));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].job = "job" + std::to_string(i == 3 ? 0 : i);  // the last one is of the first application
      for (std::size_t n = 1 + pick(2); n > 0; --n) {
        clients_[i].workers.push_back({one_in(3), 1 + static_cast<int>(pick(6)), 0, in(milliseconds{500})});
      }
    }
  }

  void to_the_end() {
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 100'000) << "it does not end";
      const Due due = next();
      if (due.at == Time::max()) break;
      network_.advance(due.at);
      due.act();
      if (!weather_.calm) disturb();
      check();
      if (::testing::Test::HasFailure()) return;
    }
    for (const Client& client : clients_) EXPECT_TRUE(client.has_left) << "somebody waits, and nothing is due ever";
    EXPECT_TRUE(cluster().applications().empty());
    EXPECT_EQ(cluster().find_target("disk"), nullptr) << "a grant is left behind";
  }
  int grants() const { return network_.grants(); }
  Duration longest{};  // wait
  int delegations = 0;
  int recalls = 0;

 private:
  struct Due {
    Time at = Time::max();
    std::function<void()> act;
  };

  static coordinator::CoordinatorSettings settings(const Weather& weather) {
    coordinator::CoordinatorSettings settings{{weather.policy}, lease, milliseconds{20}, seconds{3}, keep_alive};
    settings.delegate_after = milliseconds{150};
    return settings;
  }
  std::uint64_t pick(std::uint64_t below) { return random_.pick(below); }
  bool one_in(std::uint64_t n) { return random_.one_in(n); }
  Time now() const { return network_.now(); }
  // Returns a time from now on.
  Time in(Duration most) { return now() + random_.some(most); }
  Time end_of_work() { return in(one_in(5) ? milliseconds{2500} : milliseconds{500}); }
  const model::Cluster& cluster() const { return network_.cluster(); }

  // Returns what happens next. Nothing happens any more at Time::max().
  Due next() {
    Due first;
    const auto offer = [&first](Time at, auto act) {
      if (at < first.at) first = {at, act};
    };
    if (const auto deadline = network_.deadline()) offer(*deadline, [this] { network_.tick(); });
    for (Connection& connection : network_.connections()) {
      if (!connection.up.empty()) offer(connection.up.front().at, [&] { network_.arrive(connection); });
      if (!connection.down.empty()) offer(connection.down.front().at, [&] { receive(connection); });
    }
    for (Client& client : clients_) {
      if (client.has_left) continue;
      offer(client.flush, [&] { send_batch(client); });
      for (Worker& worker : client.workers) offer(worker.next, [&] { act(client, worker); });
      for (auto& [id, asked] : client.requests) {
        if (asked.held) offer(asked.renew, [this, &client, number = id] { renew(client, number); });
        if (is_waiting(asked.standing) && !asked.awaited)
          offer(limit(asked), [this, &client, number = id] { pass_limit(client, number); });
      }
    }
    return first;
  }

  void disturb() {
    Client& client = clients_[pick(clients_.size())];
    Connection* connection = client.connection;
    if (client.has_left || connection == nullptr || connection->cut) return;
    // hocketd refuses a number that was used before.
    if (one_in(150) && connection->last_request != 0) send_start(client, connection->last_request);
    if (one_in(20) && !client.requests.empty()) {
      const auto chosen = std::next(client.requests.begin(), static_cast<std::ptrdiff_t>(pick(client.requests.size())));
      call_in_vain(client, chosen->first, chosen->second.standing);
    }
    if (one_in(200)) network_.cut(*connection);
    if (one_in(600)) leave(client);
  }

  // Threads call these functions also where there is nothing to do.
  void call_in_vain(Client& client, std::uint64_t number, Standing standing) {
    if (standing != Standing::to_pause) feed(client, number, StandingInput::stop);
    if (standing != Standing::queued && standing != Standing::offered) feed(client, number, StandingInput::take_up);
  }

  // ---- the client: messages

  // What waits in the batch goes first.
  void send(Client& client, event::Body body) {
    send_batch(client);
    if (client.connection != nullptr) network_.send(*client.connection, std::move(body));
  }
  void send_batch(Client& client) {
    client.flush = Time::max();
    for (Sent& sent : std::exchange(client.batch, {})) {
      if (client.connection == nullptr) continue;
      const Duration ago = std::max(now() - sent.at, Duration{1});
      if (auto* start = std::get_if<event::StartIo>(&*sent.body)) start->ago = ago;
      if (auto* finish = std::get_if<event::FinishIo>(&*sent.body)) finish->ago = ago;
      network_.send(*client.connection, *sent.body);
    }
  }
  void add_to_batch(Client& client, event::Body body) {
    if (client.batch.empty()) client.flush = in(milliseconds{200});
    client.batch.push_back({now(), std::move(body)});
  }
  void send_start(Client& client, std::uint64_t number) {
    if (client.connection != nullptr) client.connection->last_request = number;
    event::StartIo start{RequestId{number}, "disk", "/f", "op", 1};
    const auto found = client.requests.find(number);
    const bool delegated = found != client.requests.end() && found->second.delegated;
    if (delegated) start.delegation = RequestId{found->second.delegation};
    delegated ? add_to_batch(client, start) : send(client, start);
  }

  // ---- the client: delegations, as session_delegations.cpp

  void take_delegation(Client& client, std::uint64_t number) {
    const auto found = client.requests.find(number);
    const bool in_vain = found == client.requests.end() ||
                         !standing_step(found->second.standing, StandingInput::grant).does(StandingAction::take_share);
    if (in_vain) return return_delegation(client, number);
    client.delegations.insert(number);
    Asked& asked = client.requests.at(number);
    asked.delegation = number;
    asked.delegated = true;
    ++delegations;
  }
  void return_delegation(Client& client, std::uint64_t number) {
    client.delegations.erase(number);
    client.returned.insert(number);
    for (auto& [id, asked] : client.requests) {
      if (asked.delegation == number && std::exchange(asked.delegated, false)) feed(client, id, StandingInput::recall);
    }
    send(client, event::ReturnIo{RequestId{number}});
    ++recalls;
  }
  void delegation_expired(Client& client, std::uint64_t number) {
    client.delegations.erase(number);
    std::erase_if(client.batch, [&](const Sent& sent) {
      const auto* start = std::get_if<event::StartIo>(&*sent.body);
      return start != nullptr && start->delegation.value == number;
    });
    for (auto& [id, asked] : client.requests) {
      if (asked.delegation != number) continue;
      asked.delegated = false;
      feed(client, id, StandingInput::expire);
    }
  }
  static void forget_delegations(Client& client) {
    client.delegations.clear();
    client.returned.clear();
    client.batch.clear();
    client.flush = Time::max();
    for (auto& [id, asked] : client.requests) asked.delegated = false;
  }

  void receive(Connection& connection) {
    const std::optional<event::Body> body = Network::take(connection);
    Client& client = clients_[connection.client];
    if (client.connection != &connection) return;
    if (!body) return lose(client);
    if (const auto* grant = std::get_if<event::GrantIo>(&*body)) {
      if (grant->delegated) take_delegation(client, grant->request.value);
      feed(client, grant->request.value, StandingInput::grant);
    }
    if (const auto* recall = std::get_if<event::RecallIo>(&*body)) return_delegation(client, recall->request.value);
    if (const auto* queued = std::get_if<event::QueuedIo>(&*body))
      feed(client, queued->request.value, StandingInput::queue);
    if (const auto* expired = std::get_if<event::LeaseExpired>(&*body)) {
      delegation_expired(client, expired->request.value);
      feed(client, expired->request.value, StandingInput::expire);
    }
    if (const auto* pause = std::get_if<event::PauseIo>(&*body)) {
      const auto found = client.requests.find(pause->request.value);
      const bool unattended = found != client.requests.end() && found->second.io_step && !found->second.awaited;
      feed(client, pause->request.value, unattended ? StandingInput::pause_unattended : StandingInput::pause);
    }
    if (std::holds_alternative<event::Refused>(*body))
      for (auto& [number, asked] : client.requests) feed(client, number, StandingInput::refuse);
  }

  void lose(Client& client) {
    client.connection = nullptr;
    forget_delegations(client);
    for (auto& [number, asked] : client.requests)
      feed(client, number, asked.io_step ? StandingInput::lose_step : StandingInput::lose);
    for (Worker& worker : client.workers) worker.next = std::min(worker.next, in(milliseconds{2}));
  }

  // Feeds an input into the table and carries out the actions. The caller removes a request that has ended.
  void feed(Client& client, std::uint64_t number, StandingInput input) {
    const auto found = client.requests.find(number);
    const Standing before = found == client.requests.end() ? Standing::none : found->second.standing;
    const StandingStep step = standing_step(before, input);
    met_.insert({before, input});
    EXPECT_TRUE(step.possible) << name_of(before) << ", " << name_of(input);
    if (found == client.requests.end()) return;
    Asked& asked = found->second;
    asked.standing = step.next;
    count(asked, before, number);
    carry_out(client, number, asked, step);
    if (step.next == before || (asked.io_step && !asked.awaited)) return;
    for (Worker& worker : client.workers)
      if (worker.request == number) worker.next = std::min(worker.next, in(milliseconds{2}));
  }

  void carry_out(Client& client, std::uint64_t number, Asked& asked, const StandingStep& step) {
    const RequestId id{number};
    if (step.does(StandingAction::start_waiting)) asked.since = asked.heard = now();
    if (step.does(StandingAction::hear)) asked.heard = now();
    if (step.does(StandingAction::release)) asked.held = false;
    if (step.does(StandingAction::hold)) asked.used = true;
    if (step.does(StandingAction::hold) && !asked.delegated) {
      asked.held = true;
      asked.renew = now() + lease / 3;
    }
    if (step.does(StandingAction::send_start)) send_start(client, number);
    if (step.does(StandingAction::send_paused)) send(client, event::PausedIo{id, 1, 1});
    if (step.does(StandingAction::send_finish)) {
      const event::FinishIo finish{id, {}, 1, one_in(3)};
      asked.delegated ? add_to_batch(client, finish) : send(client, finish);
    }
    if (step.does(StandingAction::withdraw)) send(client, event::FinishIo{id, {}, 0, false});
    if (step.does(StandingAction::answer)) feed(client, number, StandingInput::stop);
  }

  void count(Asked& asked, Standing before, std::uint64_t number) {
    if (asked.standing == Standing::offered && before != Standing::offered && before != Standing::none) {
      const int grants = network_.grants(asked.connection, RequestId{number});
      EXPECT_LE(++asked.offers, grants) << "a grant is used twice";
    }
    if (weather_.calm) {
      EXPECT_NE(asked.standing, Standing::alone);
      EXPECT_NE(asked.standing, Standing::expired);
    }
    if (is_waiting(before) && !is_waiting(asked.standing)) longest = std::max(longest, now() - asked.since);
  }

  // ---- the client: time

  Time limit(const Asked& asked) const {
    if (weather_.calm) return Time::max();
    return std::min(asked.since + wait_limit, asked.heard + answer_limit);
  }

  void pass_limit(Client& client, std::uint64_t number) {
    const Asked& asked = client.requests.at(number);
    const bool silent = now() < asked.since + wait_limit;
    feed(client, number, silent ? StandingInput::silence : StandingInput::long_wait);
  }

  void renew(Client& client, std::uint64_t number) {
    client.requests.at(number).renew = now() + lease / 3;
    send(client, event::RenewIo{RequestId{number}});
  }

  // ---- the client: threads of the program

  void act(Client& client, Worker& worker) {
    if (worker.request == 0) return begin(client, worker);
    Asked& asked = client.requests.at(worker.request);
    if (asked.io_step && one_in(8)) return finish(client, worker);
    switch (asked.standing) {
      case Standing::queued:
      case Standing::paused: return wait(client, worker, asked);
      case Standing::offered: return take_up(client, worker, asked);
      case Standing::to_pause: return asked.used ? stop(client, worker, asked) : take_up(client, worker, asked);
      case Standing::granted:
      case Standing::expired:
      case Standing::alone: return go_on(client, worker, asked);
      case Standing::none: FAIL() << "it is forgotten";
    }
  }

  void begin(Client& client, Worker& worker) {
    worker.next = Time::max();
    if (worker.left == 0) {
      const auto done = [](const Worker& one) { return one.left == 0 && one.request == 0; };
      if (std::all_of(client.workers.begin(), client.workers.end(), done)) leave(client);
      return;
    }
    --worker.left;
    // hocketd may be missing. Then the operation is not coordinated.
    if (client.connection == nullptr && !weather_.calm && one_in(3)) return pass_over(worker);
    ask(client, worker);
  }

  void pass_over(Worker& worker) {
    worker.request = 0;
    worker.end = {};
    worker.next = in(milliseconds{500});
  }

  void ask(Client& client, Worker& worker) {
    if (client.connection == nullptr)
      client.connection = &network_.connect(static_cast<std::size_t>(&client - clients_.data()), client.job);
    worker.request = ++client.last;
    worker.end = {};
    Asked& asked = client.requests[worker.request];
    asked.io_step = worker.io_step;
    asked.awaited = !worker.io_step;
    asked.connection = client.connection->member;
    if (!client.delegations.empty()) return ask_delegated(client, worker, asked);
    feed(client, worker.request, StandingInput::ask);
    worker.next = worker.io_step ? in(milliseconds{300}) : limit(asked);
  }

  void ask_delegated(Client& client, Worker& worker, Asked& asked) {
    asked.awaited = false;
    asked.delegation = *client.delegations.begin();
    asked.delegated = true;
    feed(client, worker.request, StandingInput::ask_delegated);
    if (!worker.io_step) return take_up(client, worker, asked);
    worker.next = in(milliseconds{300});
  }

  // A program with a step asks now and then whether it is granted, or waits for it.
  void wait(Client& client, Worker& worker, Asked& asked) {
    if (asked.io_step && !asked.awaited && one_in(2)) {
      worker.next = in(milliseconds{300});
      return;
    }
    asked.awaited = true;
    worker.next = now();
    if (client.connection == nullptr || client.connection->member != asked.connection)
      return has_lost(client, worker, asked);
    if (now() >= limit(asked)) return pass_limit(client, worker.request);
    worker.next = limit(asked);
  }

  // The connection of a waiting request has ended: the thread asks anew, or gives up.
  void has_lost(Client& client, Worker& worker, const Asked& asked) {
    if (asked.standing == Standing::paused || one_in(2))
      return feed(client, worker.request, StandingInput::no_connection);
    feed(client, worker.request, StandingInput::drop);
    client.requests.erase(worker.request);
    ask(client, worker);
  }

  void take_up(Client& client, Worker& worker, Asked& asked) {
    asked.awaited = false;
    feed(client, worker.request, StandingInput::take_up);
    worker.end = end_of_work();
    worker.next = asked.standing == Standing::to_pause ? in(milliseconds{50}) : worker.end;
  }

  // An operation that is to pause stops, or ends before it can.
  void stop(Client& client, Worker& worker, Asked& asked) {
    if (!asked.io_step && one_in(4)) return finish(client, worker);
    asked.awaited = !asked.io_step;
    worker.end = {};  // what is left of the work is drawn anew
    feed(client, worker.request, StandingInput::stop);
    worker.next = asked.io_step ? in(milliseconds{300}) : limit(asked);
  }

  void go_on(Client& client, Worker& worker, Asked& asked) {
    asked.awaited = false;
    if (asked.standing == Standing::expired && asked.io_step) {
      feed(client, worker.request, StandingInput::finish);
      client.requests.erase(worker.request);
      return client.connection == nullptr ? pass_over(worker) : ask(client, worker);
    }
    if (asked.standing != Standing::granted && !asked.used && !asked.io_step) {
      feed(client, worker.request, StandingInput::drop);
      client.requests.erase(worker.request);
      return pass_over(worker);
    }
    if (worker.end == Time{}) {
      if (!asked.io_step) feed(client, worker.request, StandingInput::take_up);
      worker.end = end_of_work();
    }
    worker.next = std::max(worker.end, now() + microseconds{1});
    if (now() >= worker.end) finish(client, worker);
  }

  void finish(Client& client, Worker& worker) {
    const std::uint64_t number = std::exchange(worker.request, 0);
    feed(client, number, StandingInput::finish);
    client.requests.erase(number);
    worker.next = in(milliseconds{300});
    if (weather_.calm || !one_in(10)) return;
    // Another thread was about to give up the request, or to look after it.
    constexpr std::array late{StandingInput::take_up,   StandingInput::stop,  StandingInput::silence,
                              StandingInput::long_wait, StandingInput::leave, StandingInput::no_connection};
    feed(client, number, late.at(pick(late.size())));
  }

  // The process ends: threads that wait go on without a grant.
  void leave(Client& client) {
    for (auto& [number, asked] : client.requests)
      if (is_waiting(asked.standing) && asked.awaited) feed(client, number, StandingInput::leave);
    client.requests.clear();
    client.has_left = true;
    if (client.connection == nullptr) return;
    send(client, event::Bye{});
    if (!client.connection->cut) network_.close(*client.connection);
  }

  // ---- what always holds of both halves together

  void check() const {
    std::set<std::string> at_work;
    for (const Client& client : clients_) {
      const Connection* connection = client.connection;
      if (client.has_left || connection == nullptr || connection->cut) continue;
      const model::Member* member = cluster().find(connection->member);
      for (const auto& [number, asked] : client.requests) {
        if (asked.connection != connection->member) continue;
        const auto known = member != nullptr ? coordinator::find(*member, RequestId{number}) : std::nullopt;
        const model::Request* request = known ? &**known : nullptr;
        // It may begin what hocketd does not know yet.
        const bool is_under = asked.delegated || client.returned.contains(asked.delegation);
        if (is_under && has_delegation(member, asked.delegation)) continue;
        if (const char* wrong = fault(*connection, number, asked, request); wrong != nullptr)
          ADD_FAILURE() << "request " << number << ", " << name_of(asked.standing) << ": " << wrong;
        if (asked.held && request != nullptr && request->state == model::RequestState::granted)
          at_work.insert(client.job);
        if (asked.delegated && asked.used && has_delegation(member, asked.delegation)) at_work.insert(client.job);
      }
      if (member != nullptr) check_known(client, *member);
    }
    EXPECT_TRUE(!weather_.exclusive || at_work.size() <= 1) << "two have the target at once";
  }

  // Returns what is wrong with a request of a client; nullptr: nothing. `known` is what the coordinator knows of it.
  const char* fault(const Connection& connection, std::uint64_t number, const Asked& asked,
                    const model::Request* known) const {
    const bool granted = known != nullptr && known->state == model::RequestState::granted;
    const bool revoked = has<event::LeaseExpired>(connection.down, number) ||
                         (asked.delegation != 0 && has<event::LeaseExpired>(connection.down, asked.delegation));
    const bool comes = revoked || has<event::GrantIo>(connection.down, number);
    const bool goes = has<event::StartIo>(connection.up, number) || has<event::PausedIo>(connection.up, number);
    switch (asked.standing) {
      case Standing::offered:
      case Standing::granted: return granted || revoked ? nullptr : "it uses what it does not have";
      case Standing::to_pause:
        return revoked || (granted && coordinator::Ledger::of(*known).told) ? nullptr : "nobody wants it to pause";
      case Standing::queued:
      case Standing::paused:
        if (now() - asked.since > (weather_.calm ? calm_limit : wait_limit)) return "it waits for too long";
        return comes || goes || (known != nullptr && !granted) ? nullptr : "it waits for nothing";
      case Standing::expired: return known == nullptr ? nullptr : "hocketd has not revoked it";
      case Standing::alone:
        return known == nullptr || has<event::FinishIo>(connection.up, number) ? nullptr : "it is not withdrawn";
      case Standing::none: break;
    }
    return "it is not removed";
  }

  static bool has_delegation(const model::Member* member, std::uint64_t delegation) {
    return member != nullptr && delegation != 0 && coordinator::find_delegation(*member, RequestId{delegation});
  }

  // Every request that the coordinator has belongs to one of the client, or will soon.
  void check_known(const Client& client, const model::Member& member) const {
    const Connection& connection = *client.connection;
    for (const auto request : member.requests) {
      const std::uint64_t number = request->id.value;
      if (request->delegation) {
        // An answer to RECALL_IO may be kept until the other members have answered.
        const bool known = client.delegations.contains(number) || has<event::GrantIo>(connection.down, number) ||
                           has<event::LeaseExpired>(connection.down, number) || client.returned.contains(number);
        if (!known) ADD_FAILURE() << "delegation " << number << ": it is lost";
        continue;
      }
      const auto ends = [&](const Sent& sent) {
        const auto* finish = std::get_if<event::FinishIo>(&*sent.body);
        return finish != nullptr && finish->request == request->id;
      };
      if (has<event::FinishIo>(connection.up, number) || std::ranges::any_of(client.batch, ends)) continue;
      if (network_.may_keep_finish(connection.member, request->id)) continue;
      const auto found = client.requests.find(number);
      const Standing standing = found == client.requests.end() ? Standing::none : found->second.standing;
      if (request->state == model::RequestState::queued) {
        if (!is_waiting(standing)) ADD_FAILURE() << "request " << number << ", " << name_of(standing) << ": queued";
        continue;
      }
      const bool has_it =
          standing == Standing::offered || standing == Standing::granted || standing == Standing::to_pause;
      const bool comes = has<event::GrantIo>(connection.down, number) || has<event::PausedIo>(connection.up, number);
      if (!has_it && !comes) ADD_FAILURE() << "request " << number << ", " << name_of(standing) << ": a grant is lost";
    }
  }

  const Weather weather_;
  Met& met_;
  Random random_;
  Network network_;
  std::vector<Client> clients_;
};

TEST(ProtocolOfGrants, LosesNoGrantAndUsesNoneTwiceWhateverIsLate) {
  Met met;
  int grants = 0;
  int delegations = 0;
  int recalls = 0;
  for (const Weather& weather : {Weather{&policy::fcfs, true, false}, Weather{&policy::interrupt, true, false},
                                 Weather{&two_at_once, false, false}}) {
    for (std::uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
      SCOPED_TRACE(std::string{weather.policy->name} + ", seed " + std::to_string(seed));
      PairOfHistories run{weather, seed, met};
      run.to_the_end();
      grants += run.grants();
      delegations += run.delegations;
      recalls += run.recalls;
      EXPECT_LE(run.longest, wait_limit);
    }
  }
  EXPECT_GT(grants, 5000);
  EXPECT_GT(delegations, 500);
  EXPECT_GT(recalls, 100);
  // The table marks what cannot happen. All else has happened here.
  for (const Standing standing : testing::all_standings()) {
    for (const StandingInput input : testing::all_inputs()) {
      EXPECT_EQ(met.contains({standing, input}), standing_step(standing, input).possible)
          << name_of(standing) << ", " << name_of(input);
    }
  }
}

TEST(ProtocolOfGrants, GrantsEveryRequestIfNothingIsLate) {
  Met met;
  for (const Weather& weather : {Weather{&policy::fcfs, true, true}, Weather{&policy::interrupt, true, true},
                                 Weather{&two_at_once, false, true}}) {
    for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
      SCOPED_TRACE(std::string{weather.policy->name} + ", seed " + std::to_string(seed));
      PairOfHistories run{weather, seed, met};
      run.to_the_end();
      EXPECT_LE(run.longest, calm_limit);
    }
  }
}

}  // namespace
}  // namespace hocket::runtime
