#include "forward/forward_service.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "base/unix_address.hpp"
#include "forward/capabilities.hpp"
#include "forward/forward_connection.hpp"

namespace hocket::forward {
namespace {

// Keys of epoll. A connection's key is its number.
constexpr std::uint64_t stop_key = 1;
constexpr std::uint64_t listener_key = 2;
constexpr std::uint64_t waiting_key = 3;
constexpr std::uint64_t first_connection = 16;

// A client often makes its next small call within a few microseconds, and to sleep and be woken takes longer. So a
// thread looks for it a few times after an answer. Where that is often in vain, only the first calls of each hundred or
// so do it, those at which the client looks for the answer.
constexpr std::int64_t looked_for_bytes = 64 << 10;
constexpr Duration look = std::chrono::microseconds{20}, trial_look = std::chrono::microseconds{50};
constexpr int in_vain_costs = 2, most_credit = 16;

// Returns the descriptors of a received message. The caller owns them.
std::array<Fd, most_descriptors> descriptors_of(msghdr& message) {
  std::array<Fd, most_descriptors> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = std::min((part->cmsg_len - CMSG_LEN(0)) / sizeof(int), most_descriptors);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
      found.at(i) = Fd{descriptor};
    }
  }
  return found;
}

// Describes what a call accesses. Returns false if that cannot be found out.
bool describe(const forward_request& request, int file, request_scheduler::IoRequest& asked) {
  struct stat about {};
  if (fstat(file, &about) != 0) return false;
  asked.file = key_of(about.st_dev, about.st_ino);
  const int flags = fcntl(file, F_GETFL);
  const bool appends = asked.writes && (flags & O_APPEND) != 0;
  std::int64_t at = request.offset >= 0 ? request.offset : lseek(file, 0, SEEK_CUR);
  if (appends) at = about.st_size;
  asked.extents.push_back({std::max<std::int64_t>(at, 0), request.bytes});
  asked.flags = static_cast<std::uint32_t>(flags & (O_DIRECT | O_SYNC | O_DSYNC));
  return true;
}

bool copies(std::uint32_t call) { return call == forward_copy || call == forward_send; }

// Returns how many descriptors a call of this kind has.
std::size_t descriptors_for(std::uint32_t call) {
  if (call == forward_store) return 0;
  return copies(call) ? 2 : 1;
}

// True if a call of this kind waits for its turn among others.
bool may_wait(std::uint32_t call) { return call != forward_hold && call != forward_sync; }

}  // namespace

Result<Fd> listen_for_forwarding(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  Fd socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  unlink(path.c_str());
  if (!socket || bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(socket.get(), SOMAXCONN) != 0)
    return Error{"cannot listen at " + path + ": " + error_text(errno)};
  return socket;
}

Result<std::unique_ptr<ForwardService>> ForwardService::start(const ForwardSettings& settings,
                                                              const std::string& directory, Fd listener, Log log) {
  struct stat about {};
  if (stat(directory.c_str(), &about) != 0) return Error{"cannot look at " + directory + ": " + error_text(errno)};
  struct statfs system {};
  constexpr std::uint64_t overlay_magic = 0x794c7630;
  const bool is_overlay = statfs(directory.c_str(), &system) == 0 &&
                          (static_cast<std::uint64_t>(system.f_type) & 0xffffffffU) == overlay_magic;
  std::unique_ptr<StorageQueue> own;
  if (settings.queue == nullptr) {
    auto made = StorageQueue::create({.scheduler = settings.scheduler,
                                      .forwarded = std::max(settings.threads, 1),
                                      .read_stripes = FileDataServers::reader_for(directory)});
    if (!made) return made.error();
    own = std::move(made).value();
  }
  std::unique_ptr<ForwardService> service{
      new ForwardService(settings, {about.st_dev, is_overlay}, std::move(listener), std::move(log), std::move(own))};
  if (!service->epoll_ || !service->stop_ || !service->beats_ || service->beat_ == nullptr)
    return Error{"cannot serve forwarded calls: " + error_text(errno)};
  for (int i = 0; i < service->queue_.slots(); ++i) service->threads_.emplace_back([&at = *service] { at.serve(); });
  service->threads_.emplace_back([&at = *service] { at.beat(); });
  service->threads_.emplace_back([&at = *service] { at.store_late(); });
  return service;
}

ForwardService::ForwardService(const ForwardSettings& settings, const ServedFileSystem& served, Fd listener, Log log,
                               std::unique_ptr<StorageQueue> own)
    : settings_(settings),
      device_(served.device),
      is_overlay_(served.is_overlay),
      listener_(std::move(listener)),
      log_(std::move(log)),
      own_queue_(std::move(own)),
      queue_(own_queue_ ? *own_queue_ : *settings.queue),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      beats_(memfd_create("hocket-beats", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      waiting_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)),
      spare_(fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0)),
      last_(first_connection) {
  constexpr std::size_t page = 4096;
  if (!beats_ || ftruncate(beats_.get(), page) != 0) return;
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, beats_.get(), 0);
  if (memory == MAP_FAILED) return;
  beat_ = new (memory) std::atomic<std::uint64_t>[2] { 1, 0 };
  // Clients map it, and only this process changes it.
  fcntl(beats_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  epoll_event stops{.events = EPOLLIN, .data = {.u64 = stop_key}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &stops);
  epoll_event waits{.events = EPOLLIN | EPOLLEXCLUSIVE, .data = {.u64 = waiting_key}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, waiting_.get(), &waits);
  watch(listener_.get(), listener_key, true);
  queue_.wake_forwarding_with([this] { wake_one(); });
}

ForwardService::~ForwardService() {
  queue_.wake_forwarding_with({});
  stopping_ = true;
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof one);
  for (std::thread& thread : threads_) thread.join();
  for (const auto& [number, connection] : connections_) {
    if (connection->collected) connection->collected->close();
    give_back(*connection);
    queue_.clients().remove(connection->client);
  }
  queue_.drop_calls();
}

// Has the client make a call that nobody has begun. Without an answer it could not know that. A call that it sends from
// now on does not arrive, which it does know.
void ForwardService::give_back(ForwardConnection& connection) {
  if (!connection.segment) return;
  shutdown(connection.socket.get(), SHUT_RD);
  bool is_awaited = connection.is_waiting && !is_unanswered(connection.message.content.request);
  connection.message.descriptors = {};
  forward_request request;
  while (recv(connection.socket.get(), &request, sizeof request, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof request))
    is_awaited = is_awaited || !is_unanswered(request);
  if (!is_awaited) return;
  forward_answer answer{};
  answer.own = forward_once;
  send_to(connection.socket.get(), answer);
}

// One thread at a time gets an event of a descriptor, until it is watched again. The next one may end the connection
// before this call has returned, so both lock: epoll alone orders nothing that C++ knows of.
void ForwardService::watch(int descriptor, std::uint64_t key, bool is_new) {
  const std::lock_guard lock(mutex_);
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = key}};
  epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

void ForwardService::serve() {
  if (const Status given_up = keep_only({}); !given_up) log_(given_up.error().text);
  std::optional<Time> again;
  bool has_worked = false;
  while (!stopping_) {
    int timeout_ms = has_worked ? 0 : -1;
    if (!has_worked && again) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*again - node_now()).count();
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
    }
    receive_all(timeout_ms);
    has_worked = carry_out_next(again);
  }
}

// Receives what has come, and waits for something before if `timeout_ms` is not 0.
void ForwardService::receive_all(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (const epoll_event& event : std::span{events}.first(static_cast<std::size_t>(std::max(count, 0))))
    handle(event.data.u64, event.events);
}

void ForwardService::handle(std::uint64_t key, std::uint32_t events) {
  if (key == stop_key) return;
  if (key == waiting_key) {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t taken = read(waiting_.get(), &times, sizeof times);
    return;
  }
  if (key == listener_key) {
    accept_all();
    return watch(listener_.get(), listener_key, false);
  }
  ForwardConnection* const connection = find(key);
  // Only this thread has the connection now, so nobody else removes it.
  if (connection == nullptr) return;
  // A client that has been killed makes no call any more: who has waited for its end may change the file already.
  // Only what it has collected is written, because those calls had returned.
  if ((events & (EPOLLHUP | EPOLLRDHUP)) != 0) return end(*connection, nullptr);
  if (serve_one(*connection)) watch(connection->socket.get(), connection->number, false);
}

ForwardService::ForwardConnection* ForwardService::find(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(number);
  return found == connections_.end() ? nullptr : found->second.get();
}

// Carries out what the scheduler says is next. Returns false if it says nothing; `again` is when to ask it.
bool ForwardService::carry_out_next(std::optional<Time>& again) {
  request_scheduler::NextBatch next = queue_.take();
  again = next.again;
  if (!next.batch) return false;
  wake_another();
  ForwardConnection* last = nullptr;
  carry_out(*next.batch, last);
  queue_.done(next.batch->number);
  if (last != nullptr && !look_for_next(*last)) watch(last->socket.get(), last->number, false);
  return true;
}

// Looks for the client's next call for a moment. Returns true if it has come, or if the connection has ended.
bool ForwardService::look_for_next(ForwardConnection& connection) {
  const bool is_trial = (connection.calls - 1) % forward_between_trials < forward_trials;
  if (connection.message.content.request.bytes > looked_for_bytes || (connection.credit <= 0 && !is_trial) ||
      beat_[1] != 0)
    return false;
  const Time until = node_now() + (is_trial ? trial_look : look);
  connection.is_looked_for = true;
  while (!queue_.has_more() && node_now() < until)
    if (!serve_one(connection)) return true;  // it is another thread's by now, or has ended
  if (connection.is_looked_for) connection.credit = std::max(connection.credit - in_vain_costs, 0);
  connection.is_looked_for = false;
  return false;
}

// Calls wait that this thread does not carry out now: an idle thread should look.
void ForwardService::wake_another() const {
  if (queue_.has_more()) wake_one();
}

void ForwardService::wake_one() const {
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = write(waiting_.get(), &one, sizeof one);
}

// Returns how many processes have made calls since this was last asked.
std::size_t ForwardService::active_processes() {
  const std::lock_guard lock(mutex_);
  std::set<pid_t> active;
  for (const auto& [number, connection] : connections_) {
    const unsigned calls = connection->calls;
    if (calls != connection->calls_before) active.insert(connection->process);
    connection->calls_before = calls;
  }
  return active.size();
}

// A client that gets no answer looks at this before it gives the server up: the storage may just be slow.
void ForwardService::beat() {
  // Half of the processors stay for the clients.
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency() / 2);
  while (!stopping_) {
    beat_[0].fetch_add(1, std::memory_order_relaxed);
    beat_[1].store(active_processes() > most ? 1 : 0, std::memory_order_relaxed);
    pollfd stopped{stop_.get(), POLLIN, 0};
    poll(&stopped, 1, forward_beat_ms);
  }
}

void ForwardService::accept_all() {
  while (true) {
    Fd socket{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) {
      if ((errno == EMFILE || errno == ENFILE) && refuse_one()) continue;
      return;
    }
    const auto peer = peer_of(socket.get());
    // Not even root's clients are served: they would act with this user's rights.
    if (!peer || peer.value().user != geteuid()) {
      log_(peer ? "refused a forwarding client of user " + std::to_string(peer.value().user) : peer.error().text);
      continue;
    }
    auto connection = std::make_unique<ForwardConnection>();
    connection->socket = std::move(socket);
    connection->user = peer.value().user;
    connection->client = queue_.clients().add(peer.value().process);
    connection->process = peer.value().process;
    ForwardConnection& added = *connection;
    {
      const std::lock_guard lock(mutex_);
      added.number = ++last_;
      connections_.emplace(added.number, std::move(connection));
    }
    watch(added.socket.get(), added.number, true);
  }
}

// Disconnects a client for whom there is no descriptor, so that it does not wait. Returns false if that is impossible.
// Only the thread that has the listener's event gets here.
bool ForwardService::refuse_one() {
  log_("refused a forwarding client: " + error_text(errno));
  const bool had_spare = static_cast<bool>(spare_);
  spare_ = Fd{};
  const bool refused = static_cast<bool>(Fd{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)});
  spare_ = Fd{fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0)};
  return had_spare && refused;
}

// Receives a message. Returns true if the connection is to be watched again: it has neither ended nor a call that
// waits.
bool ForwardService::serve_one(ForwardConnection& connection) {
  ForwardMessage& message = connection.message;
  message = {};
  iovec data{&message.content, sizeof message.content};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t received = recvmsg(connection.socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (received <= 0) return end(connection, nullptr), false;
  if (connection.is_looked_for) connection.credit = std::min(connection.credit + 1, most_credit);
  connection.is_looked_for = false;
  message.bytes = static_cast<std::size_t>(received);
  message.descriptors = descriptors_of(header);
  const bool is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
  if ((header.msg_flags & MSG_TRUNC) != 0 || (is_cut && message.descriptors[1]))
    return end(connection, "a message is too long"), false;
  if (is_cut) return leave(connection);
  return connection.segment ? take_request(connection) : greet(connection, message);
}

bool ForwardService::greet(ForwardConnection& connection, const ForwardMessage& message) {
  const forward_hello& hello = message.content.hello;
  if (message.bytes != sizeof hello || hello.version != forward_version)
    return end(connection, "a client of another version"), false;
  auto segment = std::make_shared<ClientSegment>();
  if (!message.descriptors[0] || !segment->map(message.descriptors[0].get()))
    return end(connection, "a client without usable memory"), false;
  connection.segment = std::move(segment);
  const forward_welcome welcome{forward_version, 0, settings_.maker != nullptr ? 1U : 0U};
  if (!send_to(connection.socket.get(), welcome, beats_.get())) return end(connection, nullptr), false;
  return true;
}

// Queues a request. One that is not for this server is answered at once.
bool ForwardService::take_request(ForwardConnection& connection) {
  const ForwardMessage& message = connection.message;
  const forward_request& request = message.content.request;
  const bool is_of_all = request.call == forward_sync && !message.descriptors[0];
  const std::size_t descriptors = is_of_all ? 0 : descriptors_for(request.call);
  if (message.bytes != sizeof request || request.bytes < 0 ||
      (!copies(request.call) && request.bytes > forward_most_bytes) ||
      (descriptors > 0) != static_cast<bool>(message.descriptors[0]) ||
      (descriptors > 1) != static_cast<bool>(message.descriptors[1]))
    return end(connection, "a request that is none"), false;
  connection.arrival = node_now();
  const bool waits = may_wait(request.call) && (request.call == forward_store || is_served(message));
  if (waits && queue(connection)) return false;
  return carry_out(connection);
}

// Describes the call to the scheduler. Each client waits for its answer, so calls that wait together come from clients
// that do not know of each other: it is enough that those which touch the same bytes are not carried out together.
bool ForwardService::queue(ForwardConnection& connection) {
  const forward_request& request = connection.message.content.request;
  request_scheduler::IoRequest asked;
  asked.writes = request.call != forward_read;
  if (request.call == forward_store) {
    const auto collected = collected_by(connection);
    if (!collected) return false;
    asked.file = collected->key();
    await_holders(asked.file);  // now, so that it has no slot while it waits
    const CollectedWrites::Pending pending = collected->pending();
    if (pending.bytes == 0) return false;
    asked.extents.push_back({std::max<std::int64_t>(pending.offset, 0), pending.bytes});
    if (queue_.needs_data_servers())
      asked.data_server = queue_.data_servers().known_at(asked.file, asked.extents.begin()->at);
  } else {
    const int file = connection.message.descriptors[0].get();
    if (!describe(request, file, asked)) return false;
    if (queue_.needs_data_servers())
      asked.data_server = queue_.data_servers().at(asked.file, file, asked.extents.begin()->at);
  }
  constexpr std::uint64_t most = (std::uint64_t{1} << request_bits) - 1;
  asked.ticket = connection.number << request_bits | (connection.queued++ & most);
  const ForwardClients::CallOwner owner = queue_.clients().of(connection.client);
  asked.application = owner.application;
  asked.processes = static_cast<int>(std::min<std::int64_t>(owner.processes, std::numeric_limits<int>::max()));
  asked.weight = static_cast<double>(owner.weight);
  asked.user = connection.user;
  asked.arrival = connection.arrival;
  connection.is_waiting = true;
  if (queue_.add(std::move(asked))) return true;  // it is another thread's by now
  connection.is_waiting = false;
  return false;
}

// Has the client make a call whose descriptors could not be received, because this process has too many.
bool ForwardService::leave(ForwardConnection& connection) {
  if (!connection.segment) return end(connection, "no free descriptor"), false;
  forward_answer answer{};
  answer.own = forward_once;
  ++refused_;
  return send_to(connection.socket.get(), answer) || (end(connection, nullptr), false);
}

// True if all descriptors are of regular files, and one is on the file system that the service is for. What else a
// descriptor may be by now, the client does itself.
bool ForwardService::is_served(const ForwardMessage& message) const {
  bool is_here = false;
  for (const Fd& one : message.descriptors) {
    struct stat file {};
    if (!one) continue;
    if (fstat(one.get(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
    is_here = is_here || file.st_dev == device_;
    await_holders(key_of(file.st_dev, file.st_ino));
  }
  return is_here;
}

}  // namespace hocket::forward
