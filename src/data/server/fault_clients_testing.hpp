// A model of a process that puts and gets, for the simulation of faults: the steps of StoredFile
// (libhocket/api/stored_file.cpp) in virtual time, and a program around it that writes, reads, syncs, and opens anew.
#pragma once

#include "server/fault_servers_testing.hpp"

namespace hocket::server::faults {

class Client {
 public:
  Client(World& world, int number, int clients) : world_(world), number_(number), clients_(clients) {}
  Client(const Client&) = delete;

  void start() { (program_ = program()).start(); }
  // SIGKILL: its connections end, and nothing of it runs any more.
  void kill() {
    if (done()) return;
    dead_ = true;
    for (const LinkPtr& link : links_) {
      if (!link->lost) link->lose();
      link->is_client_dead = true;
    }
    storage().end(reading_);
  }
  bool done() const { return dead_ || finished_; }
  // The longest call, and how often something happened, which shows that the schedules reach it.
  Duration longest{};
  int acknowledged = 0, failed = 0, synced = 0, losses = 0, uncertain = 0, read = 0;

 private:
  static constexpr int operations = 24;

  Storage& storage() { return world_.storage; }
  Time now() const { return world_.clock.now(); }
  bool writes_cell(int cell) const { return cell / cells_of_group % clients_ == number_; }

  // ---- waiting: io_client/waiting.cpp
  // Awaits all answers of the servers in use; one that is silent for too long is given up.
  struct Answers {
    Client& client;
    bool await_ready() const { return client.is_quiet(); }
    void await_suspend(std::coroutine_handle<> handle) {
      client.waiting_ = handle;
      for (const LinkPtr& link : client.served_) {
        link->silence = {client.now(), client.now()};
        client.watch(link, ++client.last_wait_);
      }
    }
    void await_resume() const {}
  };
  struct Sleep {
    Client& client;
    Duration time;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      client.world_.clock.in(time, [handle, &its = client] {
        if (!its.dead_) handle.resume();
      });
    }
    void await_resume() const {}
  };
  bool is_quiet() const {
    return std::all_of(served_.begin(), served_.end(), [](const LinkPtr& link) { return link->pending.empty(); });
  }
  void poke() {
    if (!dead_ && waiting_ && is_quiet()) std::exchange(waiting_, {}).resume();
  }
  void watch(const LinkPtr& link, std::uint64_t wait) {
    watched_[link->number] = wait;
    world_.clock.at(link->silence.ends(), [=, this] {
      if (dead_ || watched_[link->number] != wait || link->lost || link->pending.empty()) return;
      if (now() < link->silence.ends()) return watch(link, wait);
      link->lose();
      given_up_.push_back(&link->server);
      poke();
    });
  }

  // ---- the steps of StoredFile
  void note_loss(const LinkPtr& link) {
    const auto [error, held] = link->take_lost_data();
    others_lost_ |= link->lost && link->writes_behind && !link->early.in_order;
    if (error != 0) loss_ = error;
  }
  void leave_out_lost() {
    for (const LinkPtr& link : served_) {
      if (link->lost) note_loss(link);
      if (link->lost && link->may_still_write) parting_.push_back(link);
    }
    std::erase_if(served_, [](const LinkPtr& link) { return link->lost; });
  }
  bool is_refused() {
    std::erase_if(parting_, [](const LinkPtr& link) { return !link->may_still_write; });
    return !parting_.empty();
  }
  std::vector<int> weights() const {
    std::vector<int> weights;
    for (const LinkPtr& link : served_) weights.push_back(link->to.weight);
    return weights;
  }
  event::Placement placement() const {
    std::vector<std::string> names;
    for (const LinkPtr& link : served_) names.push_back(link->to.name);
    return event::placement_of(names, weights());
  }
  bool is_placed() const {
    return std::all_of(served_.begin(), served_.end(),
                       [this, wanted = placement()](const LinkPtr& link) { return link->placement == wanted; });
  }
  template <class Each>
  Flow ask_all(Each each) {
    leave_out_lost();
    for (const LinkPtr& link : served_) each(link);
    co_await Answers{*this};
    for (const LinkPtr& link : served_) note_loss(link);
    leave_out_lost();
  }
  // Asks for something whose answer is an error, or none.
  static void ask(const LinkPtr& link, Link::Kind kind, event::Placement where = 0) {
    link->ask(kind, {}, {}, 0, where, [&its = *link, kind](const Link::Answer& answer) {
      if (kind != Link::Kind::store && its.error == 0) its.error = answer.error;
    });
  }
  Flow connect(event::ServerMap::MappedServer to, LinkPtr& link) {
    Process* server = world_.serving(to.name);
    if (server != nullptr && server->stopped()) {
      co_await Sleep{*this, seconds{2}};
      server = world_.serving(to.name);
    }
    if (server != nullptr && server->stopped()) given_up_.push_back(server);
    // One that ends in order, or is dying, takes no clients, and may hold data for a while.
    for (const auto& process : world_.processes) {
      if (process->name == to.name && process.get() != server && !process->ended()) given_up_.push_back(process.get());
    }
    if (server == nullptr || server->stopped()) co_return;
    link = std::make_shared<Link>(world_, *server, to, [this] { poke(); });
    server->accept(link);
    links_.push_back(link);
  }
  Flow use(event::ServerMap map) {
    std::vector<LinkPtr> used;
    const auto servers = event::servers_of(map, path);
    for (const auto& server : servers) {
      const auto had = std::find_if(served_.begin(), served_.end(), [&](const LinkPtr& link) {
        return !link->lost && link->to.name == server.name && link->to.addresses == server.addresses;
      });
      LinkPtr link;
      if (had != served_.end()) {
        link = *had;
        link->to.weight = server.weight;
        served_.erase(had);
      } else {
        co_await connect(server, link);
      }
      if (link != nullptr) used.push_back(link);
    }
    co_await ask_all([](const LinkPtr& link) {
      if (link->is_open) ask(link, Link::Kind::close);
    });
    for (const LinkPtr& link : served_) link->lose();
    served_ = std::move(used);
  }
  Flow open_at_servers() {
    for (bool again = true; again;) {
      for (const LinkPtr& link : served_) {
        const event::Placement wanted = placement();
        if (link->lost || link->placement == wanted) continue;
        link->placement = wanted;
        if (link->is_open) {
          ask(link, Link::Kind::store, wanted);
          continue;
        }
        link->ask(Link::Kind::open, {}, {}, 0, wanted, [&its = *link](const Link::Answer& answer) {
          its.is_open = true;
          its.writes_behind = answer.behind;
        });
      }
      co_await Answers{*this};
      const std::size_t before = served_.size();
      leave_out_lost();
      std::erase_if(served_, [](const LinkPtr& link) { return link->failed(); });
      again = served_.size() < before;
    }
  }
  Flow ask_for_map(std::optional<event::ServerMap>& map) {
    co_await Sleep{*this, world_.random.upto(milliseconds{2})};
    map = world_.daemon->map();
    co_await Sleep{*this, world_.random.upto(milliseconds{world_.random.one_in(10) ? 50 : 1})};
  }
  Flow renew(bool& moved) {
    moved = false;
    if (now() < renew_at_) co_return;
    std::optional<event::ServerMap> map;
    co_await ask_for_map(map);
    renew_at_ = now() + (map ? Duration{milliseconds{100}} : Duration{seconds{5}});
    if (!map) co_return;
    co_await use(*map);
    moved = !is_placed();
    co_await open_at_servers();
  }
  // Sends the chunks of an access, and awaits them.
  Flow pass(bool writes, Cells range, Value value, std::vector<Value>& got, bool& lost, int& error) {
    const layout::FileView view;
    const std::int64_t first = offset_of(range.first);
    layout::StripeChunks chunks(view, {first, first + range.count}, layout::Striping(weights()));
    const std::uint64_t operation = world_.random.one_in(3) ? ++last_operation_ * 16 + number_ + 1 : 0;
    const auto failure = std::make_shared<int>(0);
    while (const auto chunk = chunks.next()) {
      const Cells part{cell_at(chunk->data.first), static_cast<int>(chunk->data.count())};
      std::vector<Value> data(writes ? part.count : 0, value);
      served_[chunk->server]->ask(writes ? Link::Kind::write : Link::Kind::read, part, data, operation, 0,
                                  [=, &got](const Link::Answer& answer) {
                                    if (*failure == 0) *failure = answer.error;
                                    if (writes || answer.error != 0) return;
                                    std::copy(answer.data.begin(), answer.data.end(),
                                              got.begin() + (part.first - range.first));
                                  });
    }
    if (operation != 0) {
      for (const LinkPtr& link : served_) link->end_operation(operation);
    }
    co_await Answers{*this};
    lost = std::any_of(served_.begin(), served_.end(), [](const LinkPtr& link) { return link->lost; });
    error = *failure;
  }
  // Accesses the file without servers.
  Flow by_itself(bool writes, Cells range, Value value, std::vector<Value>& got, int& error) {
    co_await Sleep{*this, world_.random.upto(milliseconds{5})};
    for (int i = 0; i < range.count; ++i) {
      if (!writes)
        got[i] = storage().read(range.first + i);
      else if (error == 0)
        error = storage().write(range.first + i, value);
    }
  }
  Flow access(bool writes, Cells range, Value value, std::vector<Value>& got, int& error) {
    for (;;) {
      error = 0;
      leave_out_lost();
      if (!is_placed()) co_await open_at_servers();
      if (is_refused()) {
        ++uncertain;
        error = EIO;
        co_return;
      }
      if (served_.empty()) {
        co_await by_itself(writes, range, value, got, error);
        co_return;
      }
      bool lost = false;
      co_await pass(writes, range, value, got, lost, error);
      if (lost) continue;
      if (error != 0) co_return;
      for (const LinkPtr& link : served_) link->relied = link->early.answered;
      const bool elsewhere = std::any_of(served_.begin(), served_.end(),
                                         [](const LinkPtr& link) { return !link->lost && link->early.elsewhere; });
      bool moved = false;
      if (elsewhere) co_await renew(moved);
      if (!moved) co_return;
    }
  }
  Flow store_all(Link::Kind kind, int& error) {
    co_await ask_all([kind](const LinkPtr& link) {
      if (!link->failed()) ask(link, kind);
    });
    const bool others = std::exchange(others_lost_, false);
    error = std::exchange(loss_, 0);
    if (error == 0 && others && kind == Link::Kind::sync) error = EIO;
  }

  // ---- the program, and what it may expect
  Flow open() {
    std::optional<event::ServerMap> map;
    co_await ask_for_map(map);
    if (!map) co_return;
    co_await use(*map);
    co_await open_at_servers();
  }
  Cells any_range(bool own) {
    for (;;) {
      const int group = static_cast<int>(world_.random.below(groups));
      const int first = group * cells_of_group + static_cast<int>(world_.random.below(cells_of_group));
      if (own && !writes_cell(first)) continue;
      return {first, 1 + static_cast<int>(world_.random.below(cells_of_group - first % cells_of_group))};
    }
  }
  Flow write() {
    const Cells range = any_range(true);
    const Value value = ++last_value_ * 8 + static_cast<Value>(number_);
    std::vector<Value> none;
    int error = 0;
    storage().begin_write(range, value);
    co_await access(true, range, value, none, error);
    ++(error == 0 ? acknowledged : failed);
    if (error != 0) co_return;
    storage().acknowledge(range, value, [&](int cell) {
      return std::any_of(world_.processes.begin(), world_.processes.end(),
                         [&](const auto& process) { return process->holds(cell, value); });
    });
  }
  // A server that hangs may hold data of others. An access that goes without it, because only reads were unanswered or
  // because it could not be reached, reads older values until the server has ended or has continued.
  bool may_miss_data() {
    std::erase_if(given_up_, [](const Process* server) { return server->ended(); });
    return std::any_of(given_up_.begin(), given_up_.end(),
                       [](const Process* server) { return server->holds_anything(); });
  }
  // Only a server that writes behind says that there is another map. So a process that uses none does not ask again: it
  // opened the file when there was no hocketd, or no such server in its map, or it has lost them. It does not see what
  // such servers hold.
  bool is_told_of_maps() const {
    return std::any_of(served_.begin(), served_.end(), [](const LinkPtr& link) { return link->writes_behind; });
  }
  bool anything_is_held() const {
    return std::any_of(world_.processes.begin(), world_.processes.end(),
                       [](const auto& process) { return process->holds_anything(); });
  }
  Flow read_some() {
    reading_ = {any_range(false), {}};
    storage().begin(reading_);
    std::vector<Value> got(reading_.range.count);
    int error = 0;
    bool misses = may_miss_data();
    const bool is_held = anything_is_held();
    co_await access(false, reading_.range, 0, got, error);
    storage().end(reading_);
    misses |= may_miss_data() || (is_held && !is_told_of_maps());
    if (error != 0 || misses) co_return;
    ++read;
    for (int i = 0; i < reading_.range.count; ++i) {
      EXPECT_TRUE(reading_.allowed[i].contains(got[i]))
          << "cell " << reading_.range.first + i << " was read as " << got[i] << " by client " << number_;
    }
  }
  Flow store(Link::Kind kind) {
    int error = 0;
    co_await store_all(kind, error);
    ++(error == 0 ? synced : losses);
    if (error != 0) {
      EXPECT_TRUE(storage().has_lost() || has_lost_server()) << "an error without a reason";
    }
    for (int cell = 0; cell < cells; ++cell) {
      if (writes_cell(cell)) error == 0 ? storage().stored(cell) : storage().told(cell);
    }
  }
  bool has_lost_server() const {
    return std::any_of(links_.begin(), links_.end(), [](const LinkPtr& link) { return link->lost; });
  }
  Flow one_operation() {
    const Time since = now();
    const std::uint64_t what = world_.random.below(20);
    if (what < 9)
      co_await write();
    else if (what < 16)
      co_await read_some();
    else if (what < 19)
      co_await store(Link::Kind::sync);
    else {
      // A program that opens the file again while a server may still write has no promise.
      if (!is_refused()) {
        co_await store(Link::Kind::close);
        if (!is_refused()) {
          for (const LinkPtr& link : served_) link->lose();
          served_.clear();
          co_await open();
        }
      }
    }
    longest = std::max(longest, now() - since);
  }
  Flow program() {
    co_await open();
    for (int i = 0; i < operations; ++i) {
      co_await one_operation();
      co_await Sleep{*this, world_.random.upto(world_.random.one_in(8) ? seconds{6} : milliseconds{200})};
    }
    co_await store(Link::Kind::close);
    for (const LinkPtr& link : served_) link->lose();
    finished_ = true;
  }

  World& world_;
  const int number_, clients_;
  std::vector<LinkPtr> served_, parting_, links_;
  std::vector<Process*> given_up_;
  std::coroutine_handle<> waiting_;
  std::map<std::uint64_t, std::uint64_t> watched_;
  std::uint64_t last_wait_ = 0, last_operation_ = 0;
  Value last_value_ = 0;
  Time renew_at_{};
  int loss_ = 0;
  bool others_lost_ = false, dead_ = false, finished_ = false;
  Storage::Reading reading_;
  Flow program_;
};

}  // namespace hocket::server::faults
