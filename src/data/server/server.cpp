#include "server/server.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.hpp"
#include "transport/address.hpp"

namespace hocket::server {
namespace {

using transport::Header;
using transport::Stream;
using transport::Type;

// Keys of epoll. A session's key is its number, which is larger than `first_session`.
constexpr std::uint64_t workers_key = 1;
constexpr std::uint64_t stop_key = 2;
constexpr std::uint64_t map_key = 3;
constexpr std::uint64_t leases_key = 4;  // no handler: each round attends to the leases
constexpr std::uint64_t turns_key = 5;
constexpr std::uint64_t first_listener = 16;
constexpr SessionId first_session = 1024;

constexpr std::size_t most_unanswered = 1024;             // requests of a session
constexpr std::size_t most_unsent = 256;                  // frames queued for a session
constexpr int frames_a_turn = 256;                        // frames of a session, before other sessions are served
constexpr int accepts_a_turn = 32;                        // connections, before clients are served
constexpr std::uint64_t least_progress_bytes = 64 << 10;  // within the time limit of who keeps memory
constexpr Duration greeting_limit = std::chrono::seconds{10};
constexpr Duration least_patience = std::chrono::seconds{1};       // shortest time limit of a client for the server
constexpr Duration alive_every = std::chrono::seconds{5};          // between two signs of life for a client that waits
constexpr Duration accept_pause = std::chrono::milliseconds{100};  // after accept4 has failed
constexpr Duration thin_pause = std::chrono::milliseconds{20};     // until a stalled session is looked at again
constexpr Duration readers_limit = std::chrono::seconds{20};       // for those who use data sets, at the end
constexpr Duration farewell_limit = std::chrono::seconds{2};       // for sending the last answers

// Returns the host of an address as a number.
std::string host_of(const sockaddr_storage& from, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  const auto* address = reinterpret_cast<const sockaddr*>(&from);
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return host.data();
}

// True if the other end does not even receive any more. A client that gives up only ends what it sends.
bool has_ended(int socket) {
  pollfd end{socket, 0, 0};
  return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

}  // namespace

Result<std::unique_ptr<HocketServer>> HocketServer::make(const ServerSettings& settings, const std::string& directory,
                                                         LoadCounters& load, Log log) {
  auto files = Files::in(directory);
  if (!files) return files.error();
  return std::unique_ptr<HocketServer>{new HocketServer{settings, std::move(files).value(), load, std::move(log)}};
}

HocketServer::HocketServer(const ServerSettings& settings, Files files, LoadCounters& load, Log log)
    : settings_(settings),
      log_(std::move(log)),
      load_(load),
      engine_(settings.engine, std::move(files), load,
              {.answer = [this](Answer given) { answer(std::move(given)); },
               .stored = [this](const FileOpening& opening, int error) { say_stored(opening, error, false); },
               .log = log_}),
      exchange_(settings.exchange, engine_, settings.secret_file,
                {.joined = [this](const DataSetExchange::JoinAnswer& joined) { answer_join(joined); },
                 .located = [this](const DataSetExchange::LocateAnswer& located) { answer_locate(located); },
                 .log = log_}),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      last_session_(first_session),
      now_(node_now()),
      map_came_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  watch(engine_.workers().descriptor(), workers_key, EPOLLIN, true);
  watch(map_came_.get(), map_key, EPOLLIN, true);
  watch(exchange_.descriptor(), leases_key, EPOLLIN, true);
  if (settings_.turns != nullptr) watch(settings_.turns->descriptor(), turns_key, EPOLLIN, true);
}

HocketServer::~HocketServer() {
  for (const auto& [number, session] : sessions_) forget(*session);
}

// ---- the loop ------------------------------------------------------------------------------------------------------

void HocketServer::watch(int descriptor, std::uint64_t key, std::uint32_t events, bool is_new) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

void HocketServer::listen(Fd socket, transport::Credentials credentials) {
  watch(socket.get(), first_listener + listeners_.size(), EPOLLIN, true);
  listeners_.push_back({std::move(socket), std::move(credentials)});
}

void HocketServer::watch_listeners(std::uint32_t events) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    watch(listeners_[i].socket.get(), first_listener + i, events, false);
  }
}

void HocketServer::run(int stop) {
  watch(stop, stop_key, EPOLLIN, true);
  while (!stopping_) wait();
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stop, nullptr);
  await_readers();
  settle_down();
}

// Waits until no data set is in use here. Readers of a part may still come, because its home is another server; its own
// versions are found by nobody who has not opened them yet.
void HocketServer::await_readers() {
  exchange_.wind_up();
  const Time deadline = node_now() + readers_limit;
  while (exchange_.is_in_use() && node_now() < deadline) wait();
}

// Returns how many milliseconds epoll may wait: until the next deadline, but not beyond the next beat; 0 if work is
// left.
int HocketServer::timeout_ms() {
  Time deadline = now_ + beat_every;
  const auto at_latest = [&](Time time) { deadline = std::min(deadline, time); };
  if (const auto due = engine_.next_deadline()) at_latest(*due);
  if (accept_again_) at_latest(*accept_again_);
  if (const auto due = exchange_.next_deadline()) at_latest(*due);
  if (greeting_ > 0 || !stalled_.empty())
    at_latest(now_ + std::min<Duration>(settings_.patience, std::chrono::seconds{1}));
  if (!stalled_.empty() && engine_.is_memory_scarce()) at_latest(now_ + thin_pause);
  const bool more = std::any_of(sessions_.begin(), sessions_.end(),
                                [this](const auto& one) { return one.second->more && !is_paused(*one.second); });
  if (more || !doomed_.empty() || std::exchange(freed_, false)) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - node_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 10'000));
}

// Waits for events and handles them. Disconnections come first, so that nothing is started for clients that have
// gone. Output is flushed once at the end, when all answers of this round are queued.
void HocketServer::wait() {
  std::array<epoll_event, 64> events;
  const Time since = now_;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
  now_ = node_now();
  beat();
  const auto ready = std::span{events}.first(static_cast<std::size_t>(std::max(count, 0)));
  for (const epoll_event& event : ready) {
    if ((event.events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) hang_up(event.data.u64);
  }
  bury_the_gone(since);
  for (const epoll_event& event : ready) handle(event.data.u64, event.events);
  for (auto& [number, session] : sessions_) {
    if (session->more && !is_paused(*session)) take_in(*session);
    if (session->greeting && now_ - session->came > greeting_limit) doom(*session, "did not identify itself in time");
  }
  if (accept_again_ && *accept_again_ <= now_) {
    accept_again_.reset();
    watch_listeners(EPOLLIN);
  }
  retry_stalled();
  cut_off_the_stuck();
  bury_the_gone(now_);
  exchange_.expire(now_);
  engine_.advance(now_);
  bury();  // answers that this causes are sent below with the rest
  exchange_.attend(now_);
  part_with_the_gone();
  show_life();
  for (auto& [number, session] : sessions_) {
    // Data that were sent free memory for the sessions that wait for it.
    if (session->stream.has_unsent() && session->stream.flush()) {
      note_progress(*session);
      freed_ = !stalled_.empty();
    }
    if (session->stream.ended()) doom(*session, session->stream.reason());
    update_interest(*session);
  }
  engine_.count_held();
}

// Disconnects a client that has closed its end. Its unacknowledged requests must not be carried out later: the client
// may have timed out while this process was stopped, and may have done the accesses by itself.
void HocketServer::hang_up(std::uint64_t key) {
  const auto found = sessions_.find(key);
  if (found != sessions_.end()) doom(*found->second, "closed by the other end");
}

// Removes clients that have gone, before anything is started. If this process was stopped after epoll_wait returned,
// the events do not contain the disconnections since, so each socket is polled.
void HocketServer::bury_the_gone(Time since) {
  if (node_now() - since > least_patience) {
    for (auto& [number, session] : sessions_) {
      pollfd end{session->stream.descriptor(), POLLRDHUP, 0};
      if (::poll(&end, 1, 0) == 1) hang_up(number);
    }
  }
  bury();
}

void HocketServer::handle(std::uint64_t key, std::uint32_t events) {
  if (key == workers_key) return engine_.workers().reap();
  if (key == map_key) return adopt_maps();
  if (key == turns_key) return settings_.turns->reap();  // each round starts what may be stored
  if (key == stop_key) {
    stopping_ = true;
    return;
  }
  if (key == leases_key) return;
  if (key < first_session) return accept_from(listeners_[key - first_listener]);
  const auto found = sessions_.find(key);
  if (found == sessions_.end() || (events & EPOLLIN) == 0) return;
  take_in(*found->second);
  note_progress(*found->second);
}

void HocketServer::take_map(std::optional<event::ServerMap> map, std::function<void()> stored) {
  {
    const std::lock_guard lock(maps_mutex_);
    new_maps_.push_back({std::move(map), std::move(stored)});
  }
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t woken = write(map_came_.get(), &one, sizeof one);  // fails only if it is woken already
}

void HocketServer::take_data_set_servers(std::optional<DataSetServers> servers, DataSetExchange::LeftReport report) {
  {
    const std::lock_guard lock(maps_mutex_);
    new_servers_ = [this, servers = std::move(servers), report = std::move(report)]() mutable {
      exchange_.take_servers(std::move(servers), settings_.name, std::move(report));
    };
  }
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t woken = write(map_came_.get(), &one, sizeof one);
}

void HocketServer::adopt_maps() {
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken = read(map_came_.get(), &times, sizeof times);
  std::vector<NewMap> maps;
  std::function<void()> servers;
  {
    const std::lock_guard lock(maps_mutex_);
    maps = std::exchange(new_maps_, {});
    servers = std::exchange(new_servers_, {});
  }
  if (servers) servers();
  for (NewMap& one : maps) {
    map_ = std::move(one.map);
    had_map_ = true;
    for (const FilePtr& file : engine_.files().all()) file->present = present_placement(*file);
    engine_.store_all(one.stored);
  }
}

// Returns the placement of the file by the server map. Before the first one, the server is alone; while hocketd is
// lost, or has taken this server out of use, others may have the file's bytes.
event::Placement HocketServer::present_placement(const ServerFile& file) {
  if (!had_map_) return event::one_server;
  if (!map_) return event::unknown_placement;
  const std::string path = (directory() == "/" ? "" : directory()) + "/" + file.path;
  return event::placement_at(*map_, path, settings_.name);
}

// Shows hocketd, and processes that wait for what is held, that the loop runs.
void HocketServer::beat() {
  load_.beats.fetch_add(1, std::memory_order_relaxed);
  if (settings_.engine.held != nullptr) settings_.engine.held->beat();
}

// Carries out and answers everything that was received, and receives nothing more. Each client has until the farewell
// limit to read its answers.
void HocketServer::settle_down() {
  listeners_.clear();
  exchange_.say_what_is_lost();
  engine_.take_no_turns();
  engine_.release_all();
  engine_.advance(now_);
  while (!engine_.idle()) {
    pollfd done{engine_.workers().descriptor(), POLLIN, 0};
    const Time until = std::min(now_ + beat_every, engine_.next_deadline().value_or(Time::max()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - node_now()).count();
    ::poll(&done, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    now_ = node_now();
    beat();
    engine_.workers().reap();
    engine_.advance(now_);
    show_life();
    for (auto& [number, session] : sessions_) session->stream.flush();
  }
  engine_.take_back_offers(true);
  for (auto& [number, session] : sessions_) {
    for (auto& [handle, opened] : session->handles) {
      if (opened.write_behind) say_stored(*opened.opening, opened.file->errors.untold(opened.opening->told), true);
    }
  }
  const Time deadline = node_now() + farewell_limit;
  for (auto& [number, session] : sessions_) {
    while (session->stream.has_unsent() && !session->stream.ended()) {
      session->stream.flush();
      if (session->stream.has_unsent() && !transport::wait_for(session->stream.descriptor(), POLLOUT, deadline)) break;
    }
    forget(*session);
  }
  sessions_.clear();
}

// ---- connections ---------------------------------------------------------------------------------------------------

// hocketd writes another secret when the node joins another cluster. Who has connected before is not asked again.
transport::Credentials HocketServer::credentials_at(const ClientListener& listener) const {
  transport::Credentials credentials = listener.credentials;
  if (listener.local() || settings_.secret_file.empty()) return credentials;
  if (auto secret = transport::read_secret(settings_.secret_file)) credentials.secret = std::move(secret).value();
  return credentials;
}

// The listeners stay readable if more connections wait, and epoll tells again of them.
void HocketServer::accept_from(ClientListener& listener) {
  for (int i = 0; i < accepts_a_turn; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    Fd socket{
        accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!socket) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // Too many open files, for example. The listeners stay readable, so they are not watched until the pause is
      // over.
      log_of_stranger(fmt::format("cannot accept clients: {}; tries again", error_text(errno)));
      accept_again_ = now_ + accept_pause;
      return watch_listeners(0);
    }
    Peer peer{geteuid(), 0};
    if (listener.local() && !may_connect(socket, peer)) continue;
    transport::tune(socket.get(), listener.local());
    const SessionId number = ++last_session_;
    auto session = std::make_unique<ClientSession>(number, std::move(socket), credentials_at(listener), now_);
    session->user = peer.user;
    session->process = peer.process;
    session->interest = EPOLLIN | EPOLLRDHUP;
    watch(session->stream.descriptor(), number, session->interest, true);
    ++greeting_;
    sessions_.emplace(number, std::move(session));
    if (listener.local()) continue;
    if (const auto oldest = strangers_.add(number, host_of(from, length))) {
      doom(*sessions_.at(*oldest), "did not identify itself while others came");
      strangers_.remove(*oldest);
    }
  }
}

// True if the other end of a Unix socket belongs to this user or root.
bool HocketServer::may_connect(const Fd& socket, Peer& peer) {
  const auto known = peer_of(socket.get());
  if (known) peer = known.value();
  if (known && is_trusted(peer.user)) return true;
  log_of_stranger(known ? fmt::format("refused a client of user {}", peer.user) : known.error().text);
  return false;
}

// Notes whose process a client of this node is, for the order of its accesses.
void HocketServer::identify(ClientSession& session) {
  if (settings_.engine.queue == nullptr || session.process <= 0) return;
  session.client = settings_.engine.queue->clients().add(static_cast<pid_t>(session.process));
}

void HocketServer::log_of_stranger(std::string_view line) {
  if (const auto text = about_strangers_.pass(line, now_)) log_(*text);
}

void HocketServer::forget(const ClientSession& session) const {
  if (session.client != nullptr) settings_.engine.queue->clients().remove(session.client);
}

// Ends the greeting, because the client has authenticated or goes.
void HocketServer::end_greeting(ClientSession& session) {
  session.greeting.reset();
  --greeting_;
  strangers_.remove(session.number);
}

// Notes when a client that keeps memory has moved enough of what it owes, or all. A byte now and then is no progress.
void HocketServer::note_progress(ClientSession& session) const {
  const bool owes = session.incoming || session.stream.has_unsent();
  const std::uint64_t moved = session.stream.moved_bytes();
  if (owes && moved - session.moved_before < least_progress_bytes) return;
  session.moved_before = moved;
  session.moved = now_;
}

// Marks a session for removal. It is removed by `bury`, when no caller refers to it any more.
void HocketServer::doom(ClientSession& session, std::string reason) {
  if (!session.doom.empty()) return;
  session.doom = std::move(reason);
  session.more = false;
  doomed_.push_back(session.number);
}

// Sends a frame to each client that waits, so that it can tell a server with a slow storage from one that hangs. A
// client whose requests are not read for lack of memory waits too.
void HocketServer::show_life() {
  if (now_ - shown_ < alive_every) return;
  shown_ = now_;
  for (auto& [number, session] : sessions_) {
    const bool waits = session->unanswered > 0 || session->incoming || is_paused(*session);
    if (session->greeting || !waits || session->stream.has_unsent()) continue;
    Header header;
    header.type = Type::alive;
    session->stream.send(header);
  }
}

// Closes the sockets of clients that have gone, when none of their accesses is under way any more. The end of the
// connection so tells a client that nothing of what it has sent will be carried out later: it may do that by itself.
void HocketServer::part_with_the_gone() {
  std::erase_if(parting_, [this](const auto& one) { return !engine_.has_requests_of(one.first); });
}

// Removes the marked sessions with their requests, data set openings and handles.
void HocketServer::bury() {
  if (doomed_.empty()) return;
  for (const SessionId number : std::exchange(doomed_, {})) {
    const auto found = sessions_.find(number);
    ClientSession& session = *found->second;
    if (session.doom != "closed by the other end") {
      const std::string line = fmt::format("cut off client {}: {}", number, session.doom);
      session.greeting ? log_of_stranger(line) : log_(line);
    }
    if (session.greeting) end_greeting(session);
    std::erase(stalled_, number);
    exchange_.gone(number);
    engine_.gone(number);
    for (const auto& [handle, opened] : session.handles) {
      engine_.files().close(opened.file, *opened.opening);
      part_with(opened);
    }
    KeptFd socket = session.stream.release();
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
    if (engine_.has_requests_of(number)) {
      if (!has_ended(socket.get())) engine_.hurry();  // it waits for the end of what it has sent
      parting_.emplace(number, std::move(socket));
    }
    forget(session);
    sessions_.erase(found);
    freed_ = !stalled_.empty();
  }
  engine_.advance(now_);  // starts requests that were blocked by the removed ones
}

// ---- receiving -----------------------------------------------------------------------------------------------------

// True if nothing is read from the session now (flow control).
bool HocketServer::is_paused(const ClientSession& session) const {
  return session.stalled.has_value() || session.unanswered >= most_unanswered ||
         session.stream.unsent_frames() >= most_unsent || !engine_.has_room();
}

void HocketServer::update_interest(ClientSession& session) {
  if (!session.doom.empty()) return;
  const bool paused = is_paused(session);
  const std::uint32_t interest = (paused ? 0U : static_cast<std::uint32_t>(EPOLLIN)) | EPOLLRDHUP |
                                 (session.stream.has_unsent() ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  if (interest == session.interest) return;
  session.interest = interest;
  watch(session.stream.descriptor(), session.number, interest, false);
}

void HocketServer::take_in(ClientSession& session) {
  // If reading stops early, the stream's own buffer may hold more frames, of which epoll knows nothing.
  session.more = true;
  for (int frames = 0; frames < frames_a_turn && session.doom.empty() && !is_paused(session); ++frames) {
    const Stream::Got got = session.stream.receive();
    if (got == Stream::Got::nothing) {
      session.more = false;
      return;
    }
    if (got == Stream::Got::ended) return doom(session, session.stream.reason());
    if (!take(session, got)) return;
  }
}

// Handles a frame, or the announcement of a payload. Returns false if it has to wait for memory.
bool HocketServer::take(ClientSession& session, Stream::Got got) {
  if (got == Stream::Got::frame) return take_frame(session);
  const Header& header = session.stream.header();
  if (header.type != Type::write) {
    doom(session, "sent data with a request that is not a write");
    return true;
  }
  if (!is_thin(session) && !must_queue(false)) session.incoming = engine_.take(header.payload);
  if (!session.incoming) return stall(session, got);
  session.moved = now_;  // the client's time to send begins now
  session.moved_before = session.stream.moved_bytes();
  session.stream.take_payload(session.incoming.bytes());
  return true;
}

// Puts the session at the end of the queue for memory.
bool HocketServer::stall(ClientSession& session, Stream::Got got) {
  session.stalled = got;
  stalled_.push_back(session.number);
  return false;
}

// True if sessions that came before wait for memory in the same direction. Those that are thin keep no one waiting.
bool HocketServer::must_queue(bool reads) const {
  return std::any_of(stalled_.begin(), stalled_.end(), [&](SessionId number) {
    const ClientSession& session = *sessions_.at(number);
    return (session.stream.header().type == Type::read) == reads && (reads || !is_thin(session));
  });
}

// True if a client gets no memory yet, because memory is scarce and hardly any of its payload has come. Otherwise
// clients that send a byte now and then could hold all memory until each one's time limit.
bool HocketServer::is_thin(const ClientSession& session) const {
  if (!engine_.is_memory_scarce()) return false;
  const std::uint64_t wanted = std::min<std::uint64_t>(session.stream.header().payload, least_progress_bytes);
  return session.stream.waiting_bytes() < wanted;
}

// Retries the sessions that wait for memory, those that have waited longest first. A session that finds no room again
// keeps its place before later ones. Readers do not make writers wait, nor writers readers: each direction has a
// queue of its own.
void HocketServer::retry_stalled() {
  for (const SessionId number : std::exchange(stalled_, {})) {
    ClientSession& session = *sessions_.at(number);
    const Stream::Got got = *session.stalled;
    session.stalled.reset();
    if (session.doom.empty()) take(session, got);
  }
}

// Disconnects clients that keep memory from others for longer than the time limit, by sending or reading nothing.
void HocketServer::cut_off_the_stuck() {
  if (stalled_.empty()) return;
  for (auto& [number, session] : sessions_) {
    const bool has_memory = session->incoming || session->stream.has_unsent();
    const bool others_wait = stalled_.size() > 1 || stalled_.front() != number;
    if (has_memory && others_wait && now_ - session->moved > settings_.patience) {
      doom(*session, "made no progress while others waited for its memory");
    }
  }
}

// The connection leaves this loop.
void HocketServer::on_relay(ClientSession& session) {
  if (!settings_.take_relay || session.segment || !session.handles.empty() || session.stream.has_unsent())
    return doom(session, "is a relay, which this server does not serve");
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session.stream.descriptor(), nullptr);
  settings_.take_relay(std::move(session.stream));
  doom(session, "closed by the other end");
}

bool HocketServer::take_frame(ClientSession& session) {
  if (session.greeting) {
    const Status known = session.greeting->take(session.stream);
    if (!known) {
      doom(session, known.error().text);
      return true;
    }
    end_greeting(session);
    identify(session);
    return true;
  }
  switch (session.stream.header().type) {
    case Type::share: on_share(session); break;
    case Type::open: on_open(session); break;
    case Type::join: on_join(session); break;
    case Type::find: on_find(session); break;
    case Type::adopt: on_adopt(session); break;
    case Type::locate: on_locate(session); break;
    case Type::part:
    case Type::keep: on_part(session); break;
    case Type::view: on_view(session); break;
    case Type::write:
    case Type::read: return on_transfer(session);
    case Type::end: on_end(session); break;
    case Type::sync:
    case Type::close:
    case Type::store: on_barrier(session); break;
    case Type::state: on_state(session); break;
    case Type::relay: on_relay(session); break;
    default: doom(session, "sent a message that only servers send");
  }
  return true;
}

}  // namespace hocket::server
