#include "server/control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.hpp"
#include "server/connecting.hpp"

namespace hocket::server {
namespace {

// Between two looks at the counters.
constexpr Duration load_look_every = std::chrono::milliseconds{50};
// A heartbeat is a report that comes although nothing has changed. hocketd kills a server that misses some of them.
constexpr Duration heartbeat_every = std::chrono::seconds{1};
// A server whose oldest batch has been under way for `stuck_after` also reports without progress, at this interval.
constexpr Duration stuck_every = std::chrono::milliseconds{250};
constexpr Duration stuck_after = std::chrono::milliseconds{500};
// Between two reports of what each application has had.
constexpr Duration shares_every = std::chrono::seconds{1};

}  // namespace

Control::Control(std::string socket, event::Server about, const LoadCounters& load, LogSink say, MapSink take_map,
                 DataSetsSink take_data_sets, forward::ForwardService* forwarding)
    : socket_(std::move(socket)),
      about_(std::move(about)),
      load_(load),
      say_(std::move(say)),
      take_map_(std::move(take_map)),
      take_data_sets_(std::move(take_data_sets)),
      forwarding_(forwarding) {
  signals_->wake = bus::Fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Control::Signals::raise() const {
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t woken = write(wake.get(), &one, sizeof one);  // fails only if it is raised already
}

void Control::leave() {
  signals_->leaving = true;
  signals_->raise();
  if (thread_.joinable()) thread_.join();
}

void Control::run() {
  while (!signals_->leaving) {
    const Time now = node_now();
    if (!client_ && now >= connect_at_) connect();
    if (client_) tell_load(now);
    if (client_) tell_stored();
    if (client_) tell_left();
    if (client_) ask_applications();
    take_in(load_look_every);
  }
  if (!client_) return;
  tell_load(node_now());
  if (client_) (void)client_->send(event::Bye{});
}

void Control::connect() {
  connect_at_ = node_now() + connect_again;
  auto client = bus::Client::connect(socket_, connect_limit);
  if (!client) return lost(client.error().text);
  client_.emplace(std::move(client).value());
  event::Hello hello;
  hello.application = about_.server;
  hello.version = HOCKET_VERSION;
  hello.pid = getpid();
  Status said = client_->send(hello);
  event::Server about = about_;
  about.heartbeat = heartbeat_every;
  if (forwarding_ != nullptr) {
    const forward::SchedulerChoice chosen = forwarding_->scheduler();
    about.scheduler = chosen.name;
    about.scheduler_by = chosen.by;
  }
  if (said) said = client_->send(about);
  told_at_ = node_now();
  stored_epoch_ = std::make_shared<std::atomic<std::int64_t>>(0);
  told_epoch_ = 0;
  left_ = std::make_shared<LeftToTell>();
  told_shares_.clear();
  if (!said) return lost(said.error().text);
  if (forwarding_ != nullptr) {
    forwarding_->ask_with([signals = signals_, to_ask = to_ask_](const std::string& pids) {
      {
        const std::lock_guard lock(to_ask->mutex);
        to_ask->pids.push_back(pids);
      }
      signals->raise();
    });
  }
  take_data_sets_(nullptr, [](const event::DataSetsLeft&) {});
  if (std::exchange(said_lost_, false)) say_("hocketd at " + socket_ + " answers again");
}

// Drops the connection, and logs one line for each time that hocketd is lost.
void Control::lost(std::string_view why) {
  if (client_) take_map_(std::nullopt, [] {});
  client_.reset();
  report_every_ = report_interval(1);
  if (forwarding_ != nullptr) forwarding_->ask_with(nullptr);
  if (!std::exchange(said_lost_, true)) say_("without hocketd: " + std::string{why});
}

// Reports the load if it has changed since the last report, if the server is stuck, or if a heartbeat is due. A
// heartbeat says that the loop runs: without a round of the loop since the last report, there is none. Only the loop
// changes the counters, so a change is a sign of life too.
void Control::tell_load(Time now) {
  const ReportedLoad seen{load_.operations.load(std::memory_order_relaxed),
                          load_.bytes.load(std::memory_order_relaxed),
                          load_.service_ns.load(std::memory_order_relaxed),
                          load_.queue.load(std::memory_order_relaxed),
                          load_.held_bytes.load(std::memory_order_relaxed),
                          forwarding_ == nullptr ? forward::ForwardTotals{} : forwarding_->totals()};
  const std::int64_t began = load_.oldest_start_ns.load(std::memory_order_relaxed);
  const Duration oldest = began > 0 ? std::max(now - time_from_ns(began), Duration::zero()) : Duration::zero();
  // A change of queue or buffers counts too: the last report then says that the server has become idle.
  const bool worked =
      seen.operations != told_.operations || seen.queue != told_.queue || seen.held_bytes != told_.held_bytes;
  const bool is_stuck = oldest >= stuck_after && now - told_at_ >= stuck_every;
  const std::int64_t beats = load_.beats.load(std::memory_order_relaxed);
  // Other threads carry forwarded calls out, so these are no sign of life of the loop.
  const bool forwarded =
      seen.forwarding.requests != told_.forwarding.requests || seen.forwarding.waiting != told_.forwarding.waiting;
  const bool is_due = is_stuck || forwarded || now - told_at_ >= heartbeat_every;
  if (!worked && !(is_due && beats != told_beats_)) return;
  // What is not reported now is in the sums of the next report. The last one comes at once.
  if (!is_stuck && !signals_->leaving && now - told_at_ < report_every_ - load_look_every / 2) return;
  event::ServerLoad load{seen.operations - told_.operations,
                         seen.bytes - told_.bytes,
                         Duration{seen.service_ns - told_.service_ns},
                         seen.queue,
                         seen.held_bytes,
                         oldest};
  if (forwarding_ != nullptr) add_forwarding(load, seen.forwarding, now);
  const Status said = client_->send(std::move(load));
  told_ = seen;
  told_beats_ = beats;
  told_at_ = now;
  if (!said) lost(said.error().text);
}

// Adds what was done of forwarded calls since the last report.
void Control::add_forwarding(event::ServerLoad& load, const forward::ForwardTotals& totals, Time now) {
  const forward::ForwardTotals& told = told_.forwarding;
  load.forwarded = totals.requests - told.requests;
  load.forwarded_bytes = totals.bytes - told.bytes;
  load.system_calls = totals.system_calls - told.system_calls;
  load.merged = totals.merged - told.merged;
  load.forward_waited = totals.waited - told.waited;
  load.forward_queue = totals.waiting;
  if (now - told_shares_at_ < shares_every) return;
  std::string shares = forwarding_->shares(), weights = forwarding_->weights();
  if (shares == told_shares_ && weights == told_weights_) return;
  told_shares_at_ = now;
  load.forward_shares = told_shares_ = std::move(shares);
  load.forward_weights = told_weights_ = std::move(weights);
}

// Asks hocketd for the applications of clients that are not known.
void Control::ask_applications() {
  std::vector<std::string> asked;
  {
    const std::lock_guard lock(to_ask_->mutex);
    asked.swap(to_ask_->pids);
  }
  for (std::string& pids : asked) {
    if (const Status said = client_->send(event::AskApplication{std::move(pids)}); !said)
      return lost(said.error().text);
  }
}

// Changes the request scheduler, and reports what has become of it.
void Control::use(const event::UseScheduler& wanted) {
  event::SchedulerUsed used;
  used.server = about_.server;
  used.previous = forwarding_->scheduler().name;
  used.scheduler_by = wanted.scheduler_by;
  const auto switched =
      forwarding_->use({wanted.scheduler, wanted.data_servers, wanted.stripe_bytes, wanted.scheduler_by});
  used.scheduler = forwarding_->scheduler().name;
  if (switched) used.forward_queue = switched.value().waiting;
  if (!switched) used.error = event::Prose{switched.error().text};
  if (const Status said = client_->send(std::move(used)); !said) lost(said.error().text);
}

// Reports that the server has stored what it held before the map of the newest epoch.
void Control::tell_stored() {
  const std::int64_t epoch = *stored_epoch_;
  if (epoch <= told_epoch_) return;
  told_epoch_ = epoch;
  const Status said = client_->send(event::MapStored{epoch});
  if (!said) lost(said.error().text);
}

// Reports what a drained server keeps of data sets.
void Control::tell_left() {
  std::optional<event::DataSetsLeft> left;
  {
    const std::lock_guard lock(left_->mutex);
    left = std::exchange(left_->left, std::nullopt);
  }
  if (!left) return;
  const Status said = client_->send(*std::move(left));
  if (!said) lost(said.error().text);
}

void Control::take(const event::NewServerMap& map) {
  auto read = event::parse_server_map(map.epoch, map.text);
  if (!read) return lost("hocketd sent a server map that cannot be read: " + read.error().text);
  report_every_ = report_interval(read.value().servers.size());
  // By a map without servers, this one may hold no byte.
  if (map.write_through) read.value().servers.clear();
  take_map_(std::move(read).value(), [signals = signals_, newest = stored_epoch_, epoch = map.epoch] {
    std::int64_t known = *newest;
    while (known < epoch && !newest->compare_exchange_weak(known, epoch)) {
    }
    signals->raise();
  });
}

// Receives hocketd's messages until the timeout is over, or this thread is woken. hocketd sends a server its maps, and
// may refuse the registration.
void Control::take_in(Duration timeout) {
  const Time until = node_now() + timeout;
  while (!signals_->leaving) {
    pollfd waited[2] = {{signals_->wake.get(), POLLIN, 0}, {client_ ? client_->fd() : -1, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - node_now()).count();
    if (poll(waited, 2, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return;
    if (waited[0].revents != 0) {
      std::uint64_t times = 0;
      [[maybe_unused]] const ssize_t taken = read(signals_->wake.get(), &times, sizeof times);
      return;
    }
    if (waited[1].revents != 0) hear();
  }
}

// Handles the messages of hocketd that have come. Several may come together.
void Control::hear() {
  while (client_) {
    const auto come = client_->receive(Duration::zero());
    if (!come) return lost(come.error().text);
    if (!come.value()) return;
    const event::Body& said = come.value()->body;
    if (const auto* map = std::get_if<event::NewServerMap>(&said)) take(*map);
    if (const auto* move = std::get_if<event::MoveDataSets>(&said)) {
      take_data_sets_(move, [signals = signals_, told = left_](event::DataSetsLeft left) {
        const std::lock_guard lock(told->mutex);
        told->left = std::move(left);
        signals->raise();
      });
    }
    if (forwarding_ != nullptr) {
      if (const auto* answer = std::get_if<event::ApplicationFor>(&said)) forwarding_->vouched(*answer);
      if (const auto* wanted = std::get_if<event::UseScheduler>(&said)) use(*wanted);
      if (const auto* weight = std::get_if<event::ApplicationWeight>(&said)) forwarding_->weigh(*weight);
      if (!client_) return;
    }
    if (const auto* refused = std::get_if<event::Refused>(&said)) {
      connect_at_ = node_now() + connect_again;
      lost("hocketd refuses: " + refused->text);
    }
  }
}

}  // namespace hocket::server
