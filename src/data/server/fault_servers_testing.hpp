// Models of a hocket-server, of its connections, and of hocketd, for the simulation of faults. What decides is the real
// code: the coordinator, Scheduler, Holding, ServerFile, WriteBackErrors, the placement. What is a model here does what
// server.cpp, engine.cpp, control.cpp, and the daemon do around it, for one file and without memory limits.
#pragma once

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/coordinator.hpp"
#include "event/server_map.hpp"
#include "io_client/silence.hpp"
#include "server/fault_schedules_testing.hpp"
#include "server/files.hpp"
#include "server/holding.hpp"
#include "server/scheduler.hpp"
#include "transport/early_answers.hpp"

namespace hocket::server::faults {

const std::string path = "/scratch/file";
class Process;
class Daemon;

// The world holds what servers, clients, and hocketd have in common.
struct World {
  explicit World(std::uint64_t seed);
  ~World();
  Random random;
  Clock clock;
  Storage storage;
  std::vector<std::unique_ptr<Process>> processes;
  std::unique_ptr<Daemon> daemon;
  std::uint64_t last_link = 0;
  std::int64_t last_pid = 0;

  Process* serving(const std::string& name);
};

// One connection of a client, with what each end knows. Messages of one direction keep their order.
struct Link : std::enable_shared_from_this<Link> {
  enum class Kind { open, write, read, sync, store, close };
  struct Answer {
    int error = 0;
    std::int64_t bytes = 0;
    bool early = false;
    bool elsewhere = false;
    bool behind = false;
    std::vector<Value> data{};
  };
  struct Pending {
    Kind kind;
    std::int64_t answered = 0;  // bytes that had been answered early when it was sent
    std::function<void(const Answer&)> done;
  };

  World& world;
  Process& server;
  std::uint64_t number;
  std::function<void()> poke;  // the client looks if what it waits for has come
  Time to_server_at{}, to_client_at{};

  // ---- the server's end
  OpeningPtr opening;
  bool has_handle = false;
  bool behind = false;
  bool gone = false;  // it has no session any more
  int unanswered = 0;

  // ---- the client's end: ServerLink and ServedFile
  event::ServerMap::MappedServer to;
  std::map<std::uint64_t, Pending> pending;
  std::uint64_t last_request = 0;
  bool is_open = false, writes_behind = false, lost = false, may_still_write = false, closed_by_server = false;
  bool is_client_dead = false;
  event::Placement placement = event::unknown_placement;
  transport::EarlyAnswers early;
  std::int64_t relied = 0;
  int error = 0;
  io_client::Silence silence{};

  Link(World& its_world, Process& its_server, event::ServerMap::MappedServer its_to, std::function<void()> its_poke)
      : world(its_world),
        server(its_server),
        number(++its_world.last_link),
        poke(std::move(its_poke)),
        to(std::move(its_to)) {}

  Time next(Time& last) const {
    const Duration delay =
        microseconds{50} + world.random.upto(world.random.one_in(20) ? milliseconds{60} : milliseconds{1});
    return last = std::max(last + Duration{1}, world.clock.now() + delay);
  }
  void to_client(std::function<void()> run);
  void ask(Kind kind, Cells range, std::vector<Value> data, std::uint64_t operation, event::Placement where,
           std::function<void(const Answer&)> done);
  void end_operation(std::uint64_t operation);
  void answered(std::uint64_t request, const Answer& answer);
  void closed();
  void lose();
  bool failed() const { return lost || !is_open; }
  std::pair<int, bool> take_lost_data();
};
using LinkPtr = std::shared_ptr<Link>;

// One process of hocket-server.
class Process {
 public:
  Process(World& world, std::string its_name, bool behind)
      : name(std::move(its_name)), pid(++world.last_pid), behind_(behind), world_(world) {
    file_->present = event::one_server;
    beat();
    show_life();
  }
  Process(const Process&) = delete;

  const std::string name;
  const std::int64_t pid;
  Duration service = milliseconds{2};  // of one access

  bool alive() const { return alive_ && !ending_; }  // takes clients, unless it is stopped
  bool ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  bool holds(int cell, Value value) const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& one) {
      return one.second.acknowledged && one.second.value_of(cell) == value && !is_cancelled(one.second);
    });
  }
  bool holds_anything() const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& one) { return is_held(one.second); });
  }
  // The oldest epoch of this hocketd under which it took data that it still holds.
  std::optional<std::int64_t> oldest_epoch(std::int64_t of_generation) const {
    std::optional<std::int64_t> oldest;
    for (const auto& [ticket, task] : tasks_) {
      if (!is_held(task)) continue;
      const std::int64_t epoch = task.generation == of_generation ? task.epoch : 0;
      oldest = std::min(oldest.value_or(epoch), epoch);
    }
    return oldest;
  }

  // ---- faults
  void stop() { stopped_ = true; }
  // Stops amid the next access, when it also holds what has come since.
  void stop_when_busy() { stops_when_busy_ = true; }
  void go_on();
  void kill();
  void terminate();  // SIGTERM: ends in order

  // ---- hocketd
  std::uint64_t member = 0;     // of the coordinator; 0: none
  std::int64_t generation = 0;  // of the hocketd that has its pidfd
  void reach_control() {
    from_hocketd([this] { connect_control(); });
  }
  void lose_control();
  void take_map(std::int64_t of_generation, std::int64_t epoch, const std::string& text);

  // ---- connections
  void accept(const LinkPtr& link) { links_.push_back(link); }
  // Runs it when the process runs, after what came before.
  void take(std::function<void()> message);
  void hang_up(const LinkPtr& link);
  void on(const LinkPtr& link, std::uint64_t request, Link::Kind kind, Cells range, std::vector<Value> data,
          std::uint64_t operation, event::Placement where);
  void on_end(const LinkPtr& link, std::uint64_t operation);

 private:
  void connect_control();
  // Runs it in the order of what comes from hocketd.
  void from_hocketd(std::function<void()> message) {
    stopped_ ? from_hocketd_.push_back(std::move(message)) : take(std::move(message));
  }
  struct Task {
    LinkPtr link;
    std::uint64_t request = 0;
    bool writes = false;
    bool elsewhere = false;
    bool acknowledged = false;
    OpeningPtr opening;
    Cells range;
    std::vector<Value> data;
    std::int64_t generation = 0, epoch = 0;  // of the map that it was taken under
    bool scheduled = false, performed = false;
    int error = 0;
    std::uint64_t batch = 0;
    Value value_of(int cell) const {
      return writes && !performed && cell >= range.first && cell < range.end() ? data[cell - range.first] : 0;
    }
  };
  struct UnderWay {
    Batch batch;
    bool performed = false;
    bool is_due = false;  // its time has come; if it is not performed, the process was stopped before it
  };

  bool is_cancelled(const Task& task) const { return killed_ && !under_way_.contains(task.batch); }
  bool is_held(const Task& task) const { return task.acknowledged && !task.performed && !is_cancelled(task); }
  void beat();
  void show_life();
  void advance();
  void schedule(const Holding::Tickets& tickets);
  void begin(Batch batch);
  void perform(std::uint64_t number);
  void finish(std::uint64_t number);
  void settle(std::uint64_t ticket, int error);
  void barrier(std::function<void()> passed);
  void pass_barriers();
  void reply(const LinkPtr& link, std::uint64_t request, Link::Answer answer);
  void adopt(std::optional<event::ServerMap> map, std::int64_t of_generation, std::int64_t epoch);
  event::Placement present() const;
  void part_with_the_gone();
  void end_if_done();
  void end();

  const bool behind_;
  World& world_;
  bool stops_when_busy_ = false;
  bool alive_ = true, stopped_ = false, killed_ = false, ending_ = false, ended_ = false;
  std::vector<LinkPtr> links_;
  std::deque<std::function<void()>> inbox_, from_hocketd_;
  std::vector<LinkPtr> hung_up_;
  FilePtr file_ = std::make_shared<ServerFile>();
  Scheduler scheduler_{Scheduler::SchedulerSettings{}};
  Holding holding_{Holding::HoldingSettings{}};
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, Task> tasks_;
  std::map<std::uint64_t, UnderWay> under_way_;
  struct Barrier {
    std::uint64_t ticket;
    std::function<void()> passed;
  };
  std::deque<Barrier> barriers_;
  bool had_map_ = false;
  std::optional<event::ServerMap> map_;
  std::int64_t map_generation_ = 0, map_epoch_ = 0;
  std::int64_t operations_ = 0;
  std::optional<Time> wakes_;
  Time from_hocketd_at_{};
};

// A servers policy that wants other weights every second.
inline policy::ServerDecision weigh_anew(const policy::ServersView& view, const event::Event&) {
  policy::ServerDecision decision;
  const std::int64_t turn = to_ns(view.now) / 1'000'000'000;
  for (const policy::ServerStatus& server : view.servers) {
    policy::ServerChange change;
    change.action = policy::ServerChange::Action::weigh;
    change.server = server.name;
    change.weight = 1 + turn * static_cast<std::int64_t>(3 + 2 * decision.changes.size()) % event::full_weight;
    decision.changes.push_back(change);
  }
  return decision;
}
inline const policy::ServerPolicy weighs_anew{"weighs-anew", "", weigh_anew};

// hocketd: the coordinator, and what the daemon does for it. Member 1 is an application that receives each map.
class Daemon {
 public:
  Daemon(World& world, bool kills, bool weighs)
      : world_(world),
        kills_(kills),
        settings_{{.access = &policy::fcfs, .servers = weighs ? &weighs_anew : nullptr},
                  seconds{10},
                  milliseconds{100},
                  seconds{60},
                  seconds{1}} {}

  bool up() const { return coordinator_ != nullptr; }
  std::int64_t generation() const { return generation_; }
  std::uint64_t new_member() { return ++last_member_; }
  void start();
  void end();
  void feed(std::uint64_t from, event::Body body);
  // The map that a process without MPI asks for; nothing while hocketd is down.
  std::optional<event::ServerMap> map() const;
  void has_ended(Process& process);
  std::int64_t handed() const { return handed_; }

 private:
  void arm();

  World& world_;
  const bool kills_;
  const coordinator::CoordinatorSettings settings_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  std::int64_t generation_ = 0;
  std::uint64_t last_member_ = 100;
  std::optional<Time> armed_;
  std::int64_t handed_ = 0;
};

// ---- hocketd -------------------------------------------------------------------------------------------------------

inline void Daemon::start() {
  coordinator_ = std::make_unique<coordinator::Coordinator>(settings_);
  ++generation_;
  armed_.reset();
  feed(1, event::Hello{"a", "app", "", "mpich", "", 1, 1});
  for (const auto& process : world_.processes) {
    Process* const one = process.get();
    world_.clock.in(world_.random.upto(seconds{1}), [one] { one->reach_control(); });
  }
}

inline void Daemon::end() {
  coordinator_.reset();
  for (const auto& process : world_.processes) process->lose_control();
}

inline void Daemon::feed(std::uint64_t from, event::Body body) {
  if (!up()) return;
  const std::vector<coordinator::Command> commands =
      coordinator_->handle({world_.clock.now(), {"node1", "", MemberId{from}}, std::move(body)});
  for (const coordinator::Command& command : commands) {
    if (const auto* hung = std::get_if<event::HungIoServer>(&command.body); hung != nullptr && kills_) {
      for (const auto& process : world_.processes) {
        if (process->pid == hung->pid)
          world_.clock.in(world_.random.upto(milliseconds{5}), [&one = *process] { one.kill(); });
      }
    }
    if (const auto* map = std::get_if<event::NewServerMap>(&command.body)) {
      for (const auto& process : world_.processes) {
        const bool is_its = process->member != 0 && process->member == command.to.value;
        if (is_its) process->take_map(generation_, map->epoch, map->text);
        // No process that this hocketd knows may hold data of an earlier epoch now.
        if (command.to.value != 1 || process->generation != generation_) continue;
        EXPECT_GE(process->oldest_epoch(generation_).value_or(map->epoch), map->epoch)
            << process->name << " holds data of an earlier epoch";
      }
      handed_ += command.to.value == 1;
    }
    if (std::holds_alternative<event::Refused>(command.body)) {
      for (const auto& process : world_.processes) {
        if (process->member == 0 || process->member != command.to.value) continue;
        process->generation = 0;
        process->lose_control();
      }
    }
  }
  arm();
}

inline void Daemon::arm() {
  const auto due = coordinator_->deadline();
  if (!due || (armed_ && *armed_ <= *due && *armed_ > world_.clock.now())) return;
  armed_ = *due;
  world_.clock.at(*due, [this, mine = generation_, time = *due] {
    if (up() && mine == generation_ && armed_ == time) {
      armed_.reset();
      feed(0, event::Tick{});
    }
  });
}

inline std::optional<event::ServerMap> Daemon::map() const {
  if (!up()) return std::nullopt;
  event::ServerMap map;
  for (const event::IoServer& server : coordinator_->servers().describe(world_.clock.now())) {
    if (!server.in_map) continue;
    map.servers.push_back({server.server, server.directory, server.addresses, false, static_cast<int>(server.weight)});
  }
  return map;
}

inline void Daemon::has_ended(Process& process) {
  if (!up() || process.generation != generation_) return;
  if (process.member != 0) feed(std::exchange(process.member, 0), event::Lost{});
  feed(0, event::ServerEnded{process.name, process.pid});
}

inline World::World(std::uint64_t seed) : random(seed) {}
inline World::~World() = default;

inline Process* World::serving(const std::string& name) {
  for (const auto& process : processes) {
    if (process->alive() && process->name == name) return process.get();
  }
  return nullptr;
}

// ---- a connection --------------------------------------------------------------------------------------------------

inline void Link::to_client(std::function<void()> run) {
  world.clock.at(next(to_client_at), [self = shared_from_this(), run = std::move(run)] {
    if (self->is_client_dead) return;
    run();
    self->poke();
  });
}

inline void Link::ask(Kind kind, Cells range, std::vector<Value> data, std::uint64_t operation, event::Placement where,
                      std::function<void(const Answer&)> done) {
  if (lost) return;
  const std::uint64_t request = ++last_request;
  pending.emplace(request, Pending{kind, early.answered, std::move(done)});
  const auto self = shared_from_this();
  world.clock.at(next(to_server_at), [=] {
    self->server.take([=] { self->server.on(self, request, kind, range, data, operation, where); });
  });
}

inline void Link::end_operation(std::uint64_t operation) {
  if (lost) return;
  const auto self = shared_from_this();
  world.clock.at(next(to_server_at), [=] { self->server.take([=] { self->server.on_end(self, operation); }); });
}

// The rule of ServerLink::count_early.
inline void Link::answered(std::uint64_t request, const Answer& answer) {
  const auto found = pending.find(request);
  if (lost || found == pending.end()) return;
  silence.note(true, true, world.clock.now());
  const Pending asked = std::move(found->second);
  pending.erase(found);
  if (writes_behind) {
    if (asked.kind == Kind::write || asked.kind == Kind::read) early.elsewhere = answer.elsewhere;
    if (asked.kind == Kind::write && answer.error == 0 && answer.early) early.answered += answer.bytes;
    if (asked.kind == Kind::sync) early.synced(asked.answered);
    if (asked.kind == Kind::close) early = {};
  }
  if (asked.done) asked.done(answer);
}

// The other end has closed the connection: nothing of it will be written any more.
inline void Link::closed() {
  closed_by_server = true;
  may_still_write = false;
  lose();
}

inline void Link::lose() {
  if (lost) return;
  const bool unanswered_writes =
      std::any_of(pending.begin(), pending.end(), [](const auto& one) { return one.second.kind == Kind::write; });
  may_still_write = transport::may_write_later(closed_by_server, unanswered_writes, early.are_held());
  lost = true;
  pending.clear();
  const auto self = shared_from_this();
  world.clock.at(next(to_server_at), [self] { self->server.hang_up(self); });
}

// The rule of ServedFile::take_lost_data: an errno, and if a lost server held the data.
inline std::pair<int, bool> Link::take_lost_data() {
  const int its_error = std::exchange(error, 0);
  if (!is_open) return {};
  if (!lost) return {its_error, false};
  const std::int64_t held = std::exchange(relied, 0) - early.stored;
  const int known = std::exchange(early.error, 0);
  if (its_error != 0 || known != 0) return {its_error != 0 ? its_error : known, false};
  return held > 0 ? std::pair{EIO, true} : std::pair{0, false};
}

// ---- a server: faults ----------------------------------------------------------------------------------------------

inline void Process::go_on() {
  stops_when_busy_ = false;
  if (!alive_ || !std::exchange(stopped_, false)) return;
  for (const LinkPtr& link : std::exchange(hung_up_, {})) hang_up(link);
  // The loop and the thread that talks to hocketd run beside each other.
  auto first = std::exchange(inbox_, {}), second = std::exchange(from_hocketd_, {});
  if (world_.random.one_in(2)) std::swap(first, second);
  for (auto* queue : {&first, &second}) {
    for (const auto& message : *queue) take(message);
  }
}

// An access that is inside the kernel is still carried out; the process has ended after it.
inline void Process::kill() {
  if (ended_ || killed_) return;
  killed_ = true;
  alive_ = false;
  std::erase_if(under_way_,
                [&](const auto& one) { return one.second.performed || one.second.is_due || world_.random.one_in(2); });
  for (const auto& [ticket, task] : tasks_) {
    if (!task.acknowledged || task.performed || !is_cancelled(task)) continue;
    for (int i = 0; i < task.range.count; ++i) world_.storage.lose(task.range.first + i, task.data[i]);
  }
  if (under_way_.empty()) end();
}

inline void Process::terminate() {
  if (!alive_ || stopped_ || ending_) return;
  ending_ = true;
  schedule(holding_.release_all());
  advance();
  end_if_done();
}

// settle_down: all that was received is in the file.
inline void Process::end_if_done() {
  if (!ending_ || ended_ || !tasks_.empty()) return;
  for (const LinkPtr& link : links_) {
    if (!link->has_handle || !link->behind) continue;
    link->to_client([link, error = file_->errors.untold(link->opening->told)] {
      if (link->writes_behind && !link->lost) link->early.all_stored(error, true);
    });
  }
  if (member != 0) world_.daemon->feed(std::exchange(member, 0), event::Bye{});
  end();
}

inline void Process::end() {
  alive_ = false;
  ended_ = true;
  for (const LinkPtr& link : std::exchange(links_, {})) link->to_client([link] { link->closed(); });
  world_.clock.in(world_.random.upto(milliseconds{20}), [this] { world_.daemon->has_ended(*this); });
}

inline void Process::take(std::function<void()> message) {
  if (!alive_) return;
  if (stopped_) return inbox_.push_back(std::move(message));
  message();
  if (alive_) advance();
}

// ---- a server: hocketd ---------------------------------------------------------------------------------------------

inline void Process::connect_control() {
  if (member != 0 || ending_ || !alive_) return;
  if (world_.daemon->up()) {
    member = world_.daemon->new_member();
    generation = world_.daemon->generation();
    world_.daemon->feed(member, event::Server{name, "unix:/" + name, "/scratch", 0, behind_, pid, seconds{1}});
  }
}

inline void Process::lose_control() {
  if (member == 0) return;
  member = 0;
  const auto lost = [this] { adopt(std::nullopt, 0, 0); };
  from_hocketd(lost);
}

inline void Process::take_map(std::int64_t of_generation, std::int64_t epoch, const std::string& text) {
  auto map = event::parse_server_map(epoch, text).value();
  const auto adopts = [=, this] {
    if (of_generation == generation && member != 0) adopt(map, of_generation, epoch);
  };
  const Duration delay = microseconds{50} + world_.random.upto(milliseconds{world_.random.one_in(10) ? 50 : 1});
  from_hocketd_at_ = std::max(from_hocketd_at_ + Duration{1}, world_.clock.now() + delay);
  world_.clock.at(from_hocketd_at_, [=, this] { from_hocketd(adopts); });
}

inline event::Placement Process::present() const {
  if (!had_map_) return event::one_server;
  return map_ ? event::placement_at(*map_, path, name) : event::unknown_placement;
}

inline void Process::adopt(std::optional<event::ServerMap> map, std::int64_t of_generation, std::int64_t epoch) {
  map_ = std::move(map);
  had_map_ = true;
  map_generation_ = of_generation;
  map_epoch_ = epoch;
  file_->present = present();
  barrier([=, this, mine = member] {
    if (mine == 0 || mine != member) return;
    world_.clock.in(world_.random.upto(milliseconds{1}), [=, this] {
      if (member == mine) world_.daemon->feed(mine, event::MapStored{epoch});
    });
  });
}

inline void Process::beat() {
  world_.clock.in(milliseconds{900}, [this] {
    if (!alive_) return;
    beat();
    if (stopped_) return;
    if (member == 0) return connect_control();
    const std::int64_t done = std::exchange(operations_, 0);
    const auto queue = static_cast<std::int64_t>(tasks_.size());
    world_.daemon->feed(member, event::ServerLoad{done, done << 16, done * service, queue, 0, {}});
  });
}

// ---- a server: requests --------------------------------------------------------------------------------------------

inline void Process::show_life() {
  world_.clock.in(seconds{5}, [this] {
    if (!alive_) return;
    show_life();
    if (stopped_) return;
    for (const LinkPtr& link : links_) {
      if (link->unanswered > 0) link->to_client([link] { link->silence.note(false, true, link->world.clock.now()); });
    }
  });
}

inline void Process::reply(const LinkPtr& link, std::uint64_t request, Link::Answer answer) {
  if (link->gone) return;
  --link->unanswered;
  link->to_client([=] { link->answered(request, answer); });
}

inline void Process::on(const LinkPtr& link, std::uint64_t request, Link::Kind kind, Cells range,
                        std::vector<Value> data, std::uint64_t operation, event::Placement where) {
  if (link->gone || ending_) return;
  ++link->unanswered;
  const OpeningPtr opening = link->opening;
  switch (kind) {
    case Link::Kind::open: {
      link->opening = std::make_shared<FileOpening>(FileOpening{link->number, 1, file_->errors.mark(), 0, where});
      link->has_handle = true;
      link->behind = behind_;
      file_->present = present();
      Files::count(file_, *link->opening);
      const auto opened = [=, this] { reply(link, request, {.behind = behind_}); };
      return file_->behind == 0 || file_->may_write_behind() ? opened() : barrier(opened);
    }
    case Link::Kind::sync:
      // fdatasync takes a while, and stores what is in the file.
      return barrier([=, this] {
        world_.clock.in(world_.random.upto(milliseconds{5}), [=, this] {
          take([=, this] { reply(link, request, {.error = file_->errors.tell(opening->told)}); });
        });
      });
    case Link::Kind::store:
      Files::forget(file_, *opening);
      opening->placement = where;
      Files::count(file_, *opening);
      return barrier([=, this] { reply(link, request, {}); });
    case Link::Kind::close:
      link->has_handle = false;
      return barrier([=, this] {
        Files::forget(file_, *opening);
        reply(link, request, {.error = file_->errors.tell(opening->told)});
      });
    case Link::Kind::write:
    case Link::Kind::read: break;
  }
  // Engine::submit.
  Task task;
  task.link = link;
  task.request = request;
  task.writes = kind == Link::Kind::write;
  const event::Placement mine = file_->present;
  task.elsewhere = behind_ && mine != event::unknown_placement && mine != opening->placement;
  task.range = range;
  task.data = std::move(data);
  task.generation = map_generation_;
  task.epoch = map_epoch_;
  const std::uint64_t ticket = ++last_ticket_;
  file_->outstanding.insert(ticket);
  if (task.writes && behind_ && file_->may_write_behind()) {
    task.acknowledged = true;
    task.opening = opening;
    ++opening->under_way;
    ++file_->behind;
    reply(link, request, {.bytes = range.count, .early = true, .elsewhere = task.elsewhere});
  }
  const Holding::Tickets before = holding_.release_file(1, operation);
  tasks_.emplace(ticket, std::move(task));
  schedule(before);
  const std::int64_t at = offset_of(range.first);
  if (operation == 0) return schedule({ticket});
  schedule(
      holding_.hold({1, operation}, {link->number, ticket, at, at + range.count, range.count}, world_.clock.now()));
}

inline void Process::on_end(const LinkPtr& link, std::uint64_t operation) {
  if (link->gone || ending_) return;
  schedule(holding_.end({1, operation}, link->number, 1, world_.clock.now()));
}

inline void Process::schedule(const Holding::Tickets& tickets) {
  for (const std::uint64_t ticket : tickets) {
    const auto found = tasks_.find(ticket);
    if (found == tasks_.end()) continue;
    Task& task = found->second;
    task.scheduled = true;
    scheduler_.add({ticket, 1, task.writes, {{offset_of(task.range.first), task.range.count}}});
  }
}

inline void Process::advance() {
  schedule(holding_.expire(world_.clock.now()));
  while (under_way_.size() < 2) {
    auto batch = scheduler_.next();
    if (!batch) break;
    begin(std::move(*batch));
  }
  const auto due = holding_.next_expiry();
  if (!due || (wakes_ && *wakes_ <= *due)) return;
  wakes_ = *due;
  world_.clock.at(*due, [this] {
    wakes_.reset();
    take([] {});
  });
}

inline void Process::begin(Batch batch) {
  const std::uint64_t number = batch.number;
  for (const std::uint64_t ticket : batch.tickets) tasks_.at(ticket).batch = number;
  under_way_.emplace(number, UnderWay{std::move(batch)});
  if (std::exchange(stops_when_busy_, false)) stop();
  world_.clock.in(service / 2 + world_.random.upto(service), [=, this] {
    if (!under_way_.contains(number)) return;  // killed before it began
    under_way_.at(number).is_due = true;
    // A stopped process may be inside the kernel, which carries the access out, or before it.
    if (!stopped_ || killed_ || world_.random.one_in(2)) perform(number);
    if (killed_) {
      under_way_.erase(number);
      if (under_way_.empty() && !ended_) end();
      return;
    }
    take([=, this] {
      perform(number);
      finish(number);
    });
  });
}

inline void Process::perform(std::uint64_t number) {
  UnderWay& one = under_way_.at(number);
  if (std::exchange(one.performed, true)) return;
  for (const std::uint64_t ticket : one.batch.tickets) {
    Task& task = tasks_.at(ticket);
    if (!task.writes) task.data.resize(task.range.count);
    for (int i = 0; i < task.range.count; ++i) {
      const int cell = task.range.first + i;
      if (!task.writes)
        task.data[i] = world_.storage.read(cell);
      else if (task.error == 0)
        task.error = world_.storage.write(cell, task.data[i]);
      if (task.writes && task.error != 0 && task.acknowledged) world_.storage.lose(cell, task.data[i]);
    }
    task.performed = true;
  }
}

inline void Process::finish(std::uint64_t number) {
  const Batch batch = std::move(under_way_.at(number).batch);
  under_way_.erase(number);
  scheduler_.done(batch);
  for (const std::uint64_t ticket : batch.tickets) {
    ++operations_;
    settle(ticket, tasks_.at(ticket).error);
  }
  part_with_the_gone();
  end_if_done();
}

inline void Process::settle(std::uint64_t ticket, int error) {
  const Task task = std::move(tasks_.at(ticket));
  tasks_.erase(ticket);
  file_->outstanding.erase(ticket);
  if (!task.acknowledged) {
    reply(task.link, task.request,
          {.error = error,
           .bytes = task.range.count,
           .elsewhere = task.elsewhere,
           .data = task.writes ? std::vector<Value>{} : task.data});
  } else {
    --file_->behind;
    if (error != 0) file_->errors.add(error);
    if (--task.opening->under_way == 0 && !task.link->gone) {
      task.link->to_client([link = task.link, told = file_->errors.untold(task.opening->told)] {
        if (link->writes_behind && !link->lost) link->early.all_stored(told, false);
      });
    }
  }
  pass_barriers();
}

inline void Process::barrier(std::function<void()> passed) {
  barriers_.push_back({last_ticket_, std::move(passed)});
  schedule(holding_.release_file(1, 0));
  pass_barriers();
}

inline void Process::pass_barriers() {
  std::vector<Barrier> passing;
  const auto waits = [&](const Barrier& one) { return !file_->settled_before(one.ticket); };
  const auto first = std::stable_partition(barriers_.begin(), barriers_.end(), waits);
  std::move(first, barriers_.end(), std::back_inserter(passing));
  barriers_.erase(first, barriers_.end());
  for (const Barrier& one : passing) one.passed();
}

// The client has closed its end: what was not begun is dropped before anything is started.
inline void Process::hang_up(const LinkPtr& link) {
  if (!alive_ || link->gone) return;
  if (stopped_) return hung_up_.push_back(link);
  link->gone = true;
  const auto is_its = [&](std::uint64_t ticket) {
    const auto found = tasks_.find(ticket);
    return found != tasks_.end() && found->second.link == link && !found->second.acknowledged;
  };
  std::vector<std::uint64_t> dropped = scheduler_.drop_if(is_its);
  for (const auto& [ticket, task] : tasks_) {
    if (!task.scheduled && is_its(ticket)) dropped.push_back(ticket);
  }
  for (const std::uint64_t ticket : dropped) settle(ticket, ECONNRESET);
  schedule(holding_.gone(link->number));
  if (link->has_handle) Files::forget(file_, *link->opening);
  link->has_handle = false;
  part_with_the_gone();
  advance();
  end_if_done();
}

inline void Process::part_with_the_gone() {
  std::erase_if(links_, [&](const LinkPtr& link) {
    const bool waits = !link->gone || std::any_of(tasks_.begin(), tasks_.end(),
                                                  [&](const auto& one) { return one.second.link == link; });
    if (!waits) link->to_client([link] { link->closed(); });
    return !waits;
  });
}

}  // namespace hocket::server::faults
