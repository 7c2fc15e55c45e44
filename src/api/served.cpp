// Implements accesses through I/O servers for programs without MPI. runtime/io/servers.cpp does the same for the ranks
// of an MPI program, which must also let MPI make progress and agree on lost servers.
#include "api/served.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "transport/proof.hpp"

namespace hocket::api {
namespace {

// Time limits to connect, and for the silence of all servers.
constexpr Duration connect_bound = std::chrono::seconds{2};
constexpr Duration silence_bound = std::chrono::seconds{30};
// Number of the only view that a connection uses at a time.
constexpr std::uint32_t view_number = 0;
// Chunks in flight at one server: it writes one while others are on their way.
constexpr std::size_t under_way_each = 3;

// Requests to all servers that have no answer yet.
std::size_t pending(const std::vector<Served>& served) {
  std::size_t sum = 0;
  for (const Served& one : served) sum += one.pending();
  return sum;
}

bool any_lost(const std::vector<Served>& served) {
  return std::any_of(served.begin(), served.end(), [](const Served& one) { return one.lost(); });
}

// Gives up the servers that owe an answer.
void lose_pending(std::vector<Served>& served, const char* why) {
  for (Served& one : served)
    if (one.pending() > 0) one.lose(why);
}

// Sleeps until a connection has data or room, at most for `most`.
void wait_until_ready(std::vector<Served>& served, Duration most) {
  std::vector<pollfd> polled;
  for (Served& one : served)
    if (!one.lost()) polled.push_back({one.link().descriptor(), one.link().events(), 0});
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(most).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(ms));
}

// Makes progress until `done()`; gives up silent servers. `done` may send further requests.
template <class Done>
void wait(std::vector<Served>& served, Done done) {
  Time last = node_now();
  while (!done()) {
    bool moved = false;
    for (Served& one : served) moved |= one.poll();
    const Time now = node_now();
    if (moved) {
      last = now;
    } else if (now - last >= silence_bound) {
      lose_pending(served, "nothing came from it for 30 s");
    } else {
      wait_until_ready(served, silence_bound - (now - last));
    }
  }
}

// Gives up unanswered servers when a function ends, also by an exception: their answers would write to the caller's
// memory.
class Quiet {
 public:
  explicit Quiet(std::vector<Served>& served) : served_(served) {}
  ~Quiet() { lose_pending(served_, "given up"); }  // a text short enough to need no memory, which may have run out
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::vector<Served>& served_;
};

// One access: sends its chunks and takes the answers.
class Passage {
 public:
  Passage(std::vector<Served>& served, const Access& access, int participants)
      : served_(served),
        access_(access),
        participants_(participants),
        striping_(access.view, access.bytes, served.size()),
        piece_(striping_.next()),
        there_(access.bytes) {}

  // Sends as many requests as may be in flight. Returns true when nothing is left to send or receive.
  bool go_on();
  // Returns the result. Precondition: go_on() has returned true.
  Passed passed() const { return {any_lost(served_), error_, access_.writes ? 0 : there_, last_ > there_}; }

 private:
  void ask(const Piece& piece);
  void came(layout::Interval data, std::int64_t got);
  void end();

  std::vector<Served>& served_;
  const Access& access_;
  int participants_;
  Striping striping_;
  std::optional<Piece> piece_;
  std::size_t under_way_ = 0;
  bool ended_ = false;
  int error_ = 0;          // first errno
  std::int64_t there_;     // bytes of data before the first missing one
  std::int64_t last_ = 0;  // bytes of data up to the last that came
};

bool Passage::go_on() {
  // If a server is lost, the whole access is repeated without it, so nothing more is sent.
  while (piece_ && under_way_ < under_way_each * served_.size() && !any_lost(served_)) {
    ask(*piece_);
    piece_ = striping_.next();
  }
  if (any_lost(served_)) return pending(served_) == 0;
  if (!piece_ && !std::exchange(ended_, true)) end();
  return ended_ && pending(served_) == 0;
}

// Tells all servers that this process sends nothing more for the collective operation.
void Passage::end() {
  if (access_.operation == 0) return;
  for (Served& one : served_) {
    one.link().end(one.handle, access_.operation, participants_);
    one.poll();  // sends it now: nothing may be pending that would take it along later
  }
}

void Passage::ask(const Piece& piece) {
  Served& to = served_[piece.server];
  const std::span<std::byte> own{access_.memory + piece.data.first, static_cast<std::size_t>(piece.data.count())};
  // Data go through memory shared with the server if possible, else straight from the caller's memory.
  const auto staged = std::make_shared<transport::Staged>(
      to.link().shares_memory() ? to.link().stage(piece.data.count()) : transport::Staged{});
  const bool copies = !staged->bytes().empty();
  const std::span<std::byte> memory = copies ? staged->bytes().first(own.size()) : own;
  transport::Place place = transport::At{access_.view.offset(piece.data.first)};
  if (!access_.view.contiguous()) {
    to.show(access_.view);
    place = transport::Viewed{view_number, piece.data};
  }
  ++under_way_;
  if (access_.writes) {
    if (copies) std::memcpy(memory.data(), own.data(), own.size());
    to.link().write(to.handle, place, access_.operation, memory, [this, staged](int error, std::int64_t) {
      --under_way_;
      if (error_ == 0) error_ = error;
    });
    return;
  }
  to.link().read(to.handle, place, access_.operation, memory,
                 [this, staged, own, memory, copies, data = piece.data](int error, std::int64_t got) {
                   --under_way_;
                   if (error_ == 0) error_ = error;
                   if (copies) std::memcpy(own.data(), memory.data(), static_cast<std::size_t>(got));
                   came(data, got);
                 });
}

// Notes how much of a chunk was read. Answers come in any order.
void Passage::came(layout::Interval data, std::int64_t got) {
  if (got < data.count()) there_ = std::min(there_, data.first + got);
  if (got > 0) last_ = std::max(last_, data.first + got);
}

}  // namespace

Result<Served> Served::reach(const event::ServerMap::Server& server) {
  const std::string secret = transport::secret_beside(bus::default_socket());
  auto link = transport::ServerLink::connect(server.addresses, secret, connect_bound);
  if (!link) return link.error();
  return Served{server, std::move(link).value()};
}

void Served::lose(std::string why) {
  link_.reset();
  why_ = std::move(why);
}

bool Served::poll() {
  if (lost()) return false;
  const bool moved = link_->poll();
  // All callbacks of a failed connection have run by then.
  if (link_->failed() && link_->pending() == 0) lose(link_->failure_text());
  return moved;
}

void Served::show(const layout::View& view) {
  std::string serialised;
  layout::append(view, serialised);
  if (view_ == serialised) return;
  link_->view(handle, view_number, serialised);
  view_ = std::move(serialised);
}

void settle(std::vector<Served>& served) {
  const Quiet quiet{served};
  wait(served, [&] { return pending(served) == 0; });
}

Passed pass(std::vector<Served>& served, const Access& access, int participants) {
  // `quiet` is declared after it, so it is destroyed first: callbacks refer to the passage.
  Passage passage{served, access, participants};
  const Quiet quiet{served};
  wait(served, [&] { return passage.go_on(); });
  return passage.passed();
}

}  // namespace hocket::api
