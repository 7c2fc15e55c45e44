#include "cluster_load.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "daemon_process.hpp"
#include "link/tcp.hpp"

namespace bench {
namespace {

using namespace hocket;
using namespace std::chrono_literals;

constexpr Duration limit = 120s;  // time limit of all answers to something

template <class E>
void encode(const E& event, std::string& out) {
  if (!wire::encode(event, out)) die("an event is too long");
}

// Returns true if the frame at the begin of `bytes` is of that type. The type is the second key of each frame.
bool is_of_type(std::string_view bytes, std::string_view type) {
  return bytes.substr(0, 32).find(type) != std::string_view::npos;
}

}  // namespace

// ---- what members do -----------------------------------------------------------------------------------------------

void Load::join() {
  constexpr std::size_t most_waiting = 1000;
  const Time end = node_now() + limit;
  for (std::size_t number = 0; number < members_.size(); ++number) {
    out_.clear();
    encode(hello_of(static_cast<int>(number)), out_);
    say(number, out_);
    while (number + 1 - welcomed_ >= most_waiting && node_now() < end) wait(100ms);
  }
  while (welcomed_ < members_.size() && node_now() < end) wait(100ms);
  if (welcomed_ < members_.size()) die("only " + std::to_string(welcomed_) + " members have received WELCOME");
}

void Load::saturate(Duration time) {
  const Time end = node_now() + time;
  if (!saturates_) {
    saturates_ = true;
    for (std::size_t number = 0; number < members_.size(); ++number) {
      out_.clear();
      start(number, out_);
      say(number, out_);
    }
  }
  while (node_now() < end) wait(1ms);
}

std::vector<double> Load::pace(double per_s, Duration time) {
  const Time begin = node_now();
  waits_us_.clear();
  double asked = 0;
  std::size_t next = 0;
  // Members that follow each other have other agents.
  const std::size_t step = members_.size() / 2 + 1;
  for (Time now = begin; now < begin + time; now = node_now()) {
    while (asked < to_s(now - begin) * per_s) {
      asked += 1;
      next = (next + step) % members_.size();
      if (members_[next].waits) continue;
      out_.clear();
      start(next, out_);
      say(next, out_);
    }
    wait(begin + from_s(asked / per_s) - now);
  }
  while (std::ranges::any_of(members_, &Member::waits) && node_now() < begin + time + limit) wait(1ms);
  return std::move(waits_us_);
}

void Load::rest(Duration time) {
  const Time end = node_now() + time;
  for (Time now = node_now(); now < end; now = node_now()) wait(std::min<Duration>(end - now, 50ms));
}

void Load::start(std::size_t number, std::string& out) {
  Member& member = members_[number];
  encode(start_of(++member.request, "dev:8:" + std::to_string(number)), out);
  member.asked = node_now();
  member.waits = true;
}

void Load::hear(std::size_t member, std::string_view bytes) {
  constexpr std::size_t length_bytes = 4;
  while (bytes.size() > length_bytes) {
    const auto low = static_cast<unsigned char>(bytes[0]);
    const std::size_t size = length_bytes + low + (std::size_t{static_cast<unsigned char>(bytes[1])} << 8U);
    const std::string_view frame = bytes.substr(0, size);
    if (is_of_type(frame, "GRANT_IO")) {
      take_grant(member);
    } else if (is_of_type(frame, "WELCOME")) {
      ++welcomed_;
    } else if (is_of_type(frame, "REFUSED")) {
      die("a member was refused: " + std::string{frame});
    }
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
}

void Load::take_grant(std::size_t number) {
  Member& member = members_[number];
  if (!member.waits) die("a grant came that nobody has asked for");
  ++grants_;
  member.waits = false;
  out_.clear();
  encode(finish_of(member.request), out_);
  if (saturates_) {
    start(number, out_);
  } else {
    waits_us_.push_back(to_s(node_now() - member.asked) * 1e6);
  }
  say(number, out_);
}

int Load::wait_for_ready(Duration most) {
  const auto ns = std::max(most.count(), Duration::rep{0});
  const timespec limit_of_wait{ns / 1'000'000'000, ns % 1'000'000'000};
  return epoll_pwait2(epoll_.get(), ready.data(), static_cast<int>(ready.size()), &limit_of_wait, nullptr);
}

void Load::watch(int fd, std::uint64_t key) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) die("cannot wait for a descriptor");
}

// ---- as agents pass them on ----------------------------------------------------------------------------------------

AgentsLoad::AgentsLoad(const std::string& leader, const std::string& key, std::size_t agents, std::size_t each)
    : Load(agents * each), tls_(good(link::Tls::with_key(key))), each_(each) {
  // Agents that come while too many others have not said yet who they are wait in the kernel's queue.
  constexpr std::size_t most_greeting = 32;
  const Time end = node_now() + limit;
  for (std::size_t number = 0; number < agents; ++number) {
    link_one(leader, number);
    while (agents_.size() - linked_ >= most_greeting && node_now() < end) wait(100ms);
  }
  while (linked_ < agents && node_now() < end) wait(100ms);
  if (linked_ < agents) die("only " + std::to_string(linked_) + " agents are linked");
}

void AgentsLoad::link_one(const std::string& leader, std::size_t number) {
  Fd socket = good(link::begin_to_connect(good(link::resolve(leader)).front()));
  agents_.push_back({link::Link{link::LinkEnd::agent, good(tls_->connected(std::move(socket))), node_now()}});
  link::Link& made = agents_.back().link;
  watch(made.fd(), number);
  const std::string name = "n" + std::to_string(number);
  made.send(link::MessageKind::hello, 0, text_of(link::Introduction{link::link_version, "bench", name, "boot-" + name}),
            node_now());
  serve(number, node_now());
}

void AgentsLoad::say(std::size_t member, std::string_view bytes) {
  const std::size_t number = member / each_;
  Agent& agent = agents_[number];
  const Time now = node_now();
  if (!agent.has_opened) {
    agent.has_opened = true;
    const std::string caller = link::text_of(bus::Caller{getuid(), getpid(), true});
    for (std::size_t i = 1; i <= each_; ++i) agent.link.send(link::MessageKind::opened, i, caller, now);
  }
  agent.link.send(link::MessageKind::data, member % each_ + 1, bytes, now);
  if (!agent.has_unsent) unsent_.push_back(number);
  agent.has_unsent = true;
}

void AgentsLoad::wait(Duration most) {
  for (const std::size_t number : std::exchange(unsent_, {})) flush(number);
  const int count = wait_for_ready(unsent_.empty() ? most : Duration::zero());
  const Time now = node_now();
  for (int i = 0; i < count; ++i) serve(ready[static_cast<std::size_t>(i)].data.u64, now);
  if (now >= look_at_beats_) keep_alive(now);
}

void AgentsLoad::serve(std::size_t number, Time now) {
  link::Link& link = agents_[number].link;
  do {
    const Status served = link.serve(now, [&](const link::LinkMessage& message) { return handle(number, message); });
    if (!served) die("a link has ended: " + served.error().text);
  } while (link.has_unread());
}

Status AgentsLoad::handle(std::size_t number, const link::LinkMessage& message) {
  if (message.kind == link::MessageKind::welcome) ++linked_;
  if (message.kind == link::MessageKind::data) hear(number * each_ + message.member - 1, message.bytes);
  if (message.kind == link::MessageKind::refused || message.kind == link::MessageKind::closed)
    return Error{"the leader refuses: " + std::string{message.bytes}};
  return success();
}

void AgentsLoad::flush(std::size_t number) {
  Agent& agent = agents_[number];
  agent.has_unsent = false;
  if (const Status sent = agent.link.flush(); !sent) die("a link has ended: " + sent.error().text);
  if (!agent.link.wants_room()) return;
  agent.has_unsent = true;
  unsent_.push_back(number);
}

void AgentsLoad::keep_alive(Time now) {
  look_at_beats_ = now + 100ms;
  for (Agent& agent : agents_) {
    if (now < agent.link.deadline()) continue;
    if (const Status alive = agent.link.keep_alive(now); !alive) die("a link has ended: " + alive.error().text);
  }
}

// ---- with sockets of their own -------------------------------------------------------------------------------------

SocketsLoad::SocketsLoad(const std::string& socket, std::size_t members) : Load(members) {
  for (std::size_t number = 0; number < members; ++number) {
    sockets_.push_back(good(bus::connect_to(socket, limit)));
    watch(sockets_.back().get(), number);
  }
}

void SocketsLoad::say(std::size_t member, std::string_view bytes) {
  std::string all{bytes};
  if (!transfer_all(sockets_[member].get(), all, false)) die("hocketd has closed a connection");
}

void SocketsLoad::wait(Duration most) {
  const int count = wait_for_ready(most);
  for (int i = 0; i < count; ++i) {
    const std::size_t member = ready[static_cast<std::size_t>(i)].data.u64;
    std::array<char, 4096> bytes;
    const ssize_t n = recv(sockets_[member].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0) die("hocketd has closed a connection");
    if (n > 0) hear(member, {bytes.data(), static_cast<std::size_t>(n)});
  }
}

}  // namespace bench
