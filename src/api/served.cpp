#include "api/served.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "transport/proof.hpp"

namespace hocket::api {
namespace {

constexpr Duration connect_bound = std::chrono::seconds{2};
constexpr Duration silence_bound = std::chrono::seconds{30};
constexpr std::uint32_t view_number = 0;
constexpr std::size_t under_way_each = 3;  // pieces at one server: it writes one while others are on their way

std::size_t pending(const std::vector<Served>& served) {
  std::size_t sum = 0;
  for (const Served& one : served) sum += one.pending();
  return sum;
}

bool any_lost(const std::vector<Served>& served) {
  return std::any_of(served.begin(), served.end(), [](const Served& one) { return one.lost(); });
}

void lose_pending(std::vector<Served>& served, const char* why) {
  for (Served& one : served)
    if (one.pending() > 0) one.lose(why);
}

void wait_until_ready(std::vector<Served>& served, Duration most) {
  std::vector<pollfd> polled;
  for (Served& one : served)
    if (!one.lost()) polled.push_back({one.link().descriptor(), one.link().events(), 0});
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(most).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(ms));
}

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

// However a function ends, nothing is written to the caller's memory, nor called, any more.
class Quiet {
 public:
  explicit Quiet(std::vector<Served>& served) : served_(served) {}
  ~Quiet() { lose_pending(served_, "given up"); }  // so short that it takes no memory, which may have run out
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::vector<Served>& served_;
};

class Passage {
 public:
  Passage(std::vector<Served>& served, const Access& access, int participants)
      : served_(served),
        access_(access),
        participants_(participants),
        striping_(access.view, access.bytes, served.size()),
        piece_(striping_.next()),
        there_(access.bytes) {}

  // Asks for what there is room for; true: nothing is left to be asked or awaited.
  bool go_on();
  // What came of it, when nothing is left.
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
  int error_ = 0;          // the first
  std::int64_t there_;     // of the data: up to where the first piece has ended that is not all there
  std::int64_t last_ = 0;  // of the data: up to where something came
};

bool Passage::go_on() {
  // All of it is done again without a server that is lost.
  while (piece_ && under_way_ < under_way_each * served_.size() && !any_lost(served_)) {
    ask(*piece_);
    piece_ = striping_.next();
  }
  if (any_lost(served_)) return pending(served_) == 0;
  if (!piece_ && !std::exchange(ended_, true)) end();
  return ended_ && pending(served_) == 0;
}

void Passage::end() {
  if (access_.operation == 0) return;
  for (Served& one : served_) {
    one.link().end(one.handle, access_.operation, participants_);
    one.poll();  // nothing may be pending that would take it along
  }
}

void Passage::ask(const Piece& piece) {
  Served& to = served_[piece.server];
  const std::span<std::byte> own{access_.memory + piece.data.first, static_cast<std::size_t>(piece.data.count())};
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

// Pieces come in any order.
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
  Passage passage{served, access, participants};
  const Quiet quiet{served};
  wait(served, [&] { return passage.go_on(); });
  return passage.passed();
}

}  // namespace hocket::api
