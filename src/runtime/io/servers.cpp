#include "runtime/io/servers.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "runtime/io/agreement.hpp"
#include "runtime/io/brake.hpp"
#include "runtime/mpi/process.hpp"
#include "runtime/server_map.hpp"
#include "transport/proof.hpp"

namespace hocket::runtime::io {
namespace {

constexpr std::int64_t most_servers = 64;  // of a file: one bit each in Verdict::lost
constexpr Duration connect_bound = from_s(2);
// Silence after which a server is lost; longer than any pause of a storage that is only slow.
constexpr Duration silence_bound = from_s(30);
constexpr int look_ms = 1, long_look_ms = 10;  // ms between two calls into MPI, at first and in a long wait
constexpr Duration long_wait = from_s(0.1);    // without progress
constexpr std::uint32_t view_number = 0;       // one view per link is enough

// Resolves links, because servers compare the path with their directory.
std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

bool any_lost(std::span<const Served> served) {
  return std::any_of(served.begin(), served.end(), [](const Served& one) { return one.lost(); });
}

// Requests to all servers that have no answer yet.
std::size_t pending(std::span<const Served> served) {
  std::size_t sum = 0;
  for (const Served& one : served) sum += one.pending();
  return sum;
}

// Result of one pass of an access through servers.
struct Step {
  bool done = false;
  bool heard = false;   // received or sent a stop message
  bool awaits = false;  // waits for stop messages by MPI, which poll(2) does not see
};

// Polls the servers until `go_on` returns a step that is done. Treats silent servers as await_answers does.
template <class GoOn>
void wait(std::span<Served> served, MPI_Comm comm, GoOn go_on) {
  Time last = node_now();
  Time due = last;  // since when an answer is due
  mpi::Patience patience;
  for (Step step = go_on(); !step.done; step = go_on()) {
    bool moved = false;
    for (Served& one : served) moved |= one.poll();
    const Time now = node_now();
    if (moved || pending(served) == 0) due = now;  // no answer is due while the access is suspended
    if (moved || step.heard) {
      last = now;
      patience = mpi::Patience();
      continue;
    }
    const Duration idle = now - last;
    const bool silent = now - due > silence_bound;
    std::vector<pollfd> polled;
    for (Served& one : served) {
      if (silent && one.pending() > 0) one.lose();
      if (!one.lost()) polled.push_back({one.link().descriptor(), one.link().events(), 0});
    }
    if (step.awaits)
      patience.pause();
    else
      ::poll(polled.data(), polled.size(), idle > long_wait ? long_look_ms : look_ms);
    if (comm != mpi::no_comm()) mpi::push(comm);
  }
}

}  // namespace

void await_answers(std::span<Served> served, MPI_Comm comm) {
  wait(served, comm, [&] { return Step{.done = pending(served) == 0}; });
}

// ---- one server --------------------------------------------------------------------------------------------------

Served::Served(const event::ServerMap::Server& server) : server_(server) {
  const std::string secret = transport::secret_beside(Process::hocketd_socket());
  auto connected = transport::ServerLink::connect(server.addresses, secret, connect_bound);
  lost_ = !connected;
  if (!lost_) link_ = std::move(connected).value();
}

void Served::open(const std::string& path, int mode) {
  if (lost_) return;
  const transport::OpenMode how{.reads = (mode & MPI_MODE_WRONLY) == 0,
                                .writes = (mode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0};
  link_->open(path, how, [opened = opened_](int error, transport::ServerLink::Handle handle) {
    *opened = {error, handle, 0};
  });
}

void Served::join(const transport::DataSet& what) {
  if (lost_) return;
  link_->join(what,
              [opened = opened_](int error, transport::ServerLink::Handle handle, std::int64_t, std::int64_t bytes) {
                *opened = {error, handle, bytes};
              });
}

bool Served::poll() {
  if (lost_) return false;
  const bool moved = link_->poll();
  lost_ = link_->failed();
  return moved;
}

void Served::show(const std::string& serialised) {
  if (lost_ || view_ == serialised) return;
  link_->view(handle(), view_number, serialised);
  view_ = serialised;
}

void Served::close() {
  if (failed()) return;
  // The answer to CLOSE says if writes that were answered early are in the file.
  link_->close(handle(), [opened = opened_](int error, std::int64_t) { opened->error = error; });
}

// Closes servers that are no longer used, waits for their answers, and notes lost writes that had been answered.
void Servers::close(std::vector<Served>& served) {
  std::vector<bool> behind;
  for (Served& one : served) {
    behind.push_back(written_ && one.writes_behind());
    one.close();
  }
  await_answers(served, mpi::no_comm());
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (!behind[i] || !served[i].failed()) continue;
    behind_lost_ = true;
    Process::warn("the I/O server " + served[i].server().name +
                  " was lost, which answers writes before they are in the file: what was written through it since the "
                  "last MPI_File_sync may be missing");
  }
  served.clear();
}

// ---- the map -----------------------------------------------------------------------------------------------------

std::int64_t Servers::news() {
  offered_ = server_map();
  if (offered_ == seen_ || (!map_ && offered_->servers.empty())) return -1;
  return static_cast<std::int64_t>(event::text_of(offered_->servers).size());
}

// Broadcasts rank 0's map, and a number for its operations that no other application uses. Returns false if MPI
// failed or the text is damaged. Collective.
bool Servers::receive(const Team& team, std::int64_t map_bytes) {
  std::string text(static_cast<std::size_t>(map_bytes), '\0');
  std::array<std::int64_t, 2> numbers{};
  if (team.rank == 0) {
    seen_ = offered_;
    text = event::text_of(seen_->servers);
    numbers = {seen_->epoch, to_ns(node_now()) << 16};
  }
  if (!mpi::broadcast(team.comm, 0, numbers.data(), sizeof numbers) ||
      (map_bytes > 0 && !mpi::broadcast(team.comm, 0, text.data(), map_bytes)))
    return false;
  Result<event::ServerMap> map = event::parse_server_map(numbers[0], text);
  if (!map) return false;
  map_ = std::move(map).value();
  operation_ = static_cast<std::uint64_t>(numbers[1]);
  return true;
}

void Servers::reach(const std::string& path, int mode) {
  std::vector<Served> before = std::move(served_);
  served_.clear();
  for (const event::ServerMap::Server& server : map_->servers) {
    if (!event::serves(server, path) || count() >= std::min(most_, most_servers)) continue;
    // Keep an open connection, but not to a server that was restarted under the same name: that connection is lost.
    const auto had = std::find_if(before.begin(), before.end(),
                                  [&](Served& one) { return one.server() == server && (one.poll(), !one.lost()); });
    if (had == before.end()) {
      served_.emplace_back(server).open(path, mode);
    } else {
      served_.push_back(std::move(*had));
      before.erase(had);
    }
  }
  close(before);
}

void Servers::adopt(Team& team, const std::string& path, int mode, std::int64_t map_bytes, std::int64_t most) {
  most_ = most;
  // Without a valid map, the file uses no servers and the ranks aggregate.
  if (map_bytes >= 0 && !receive(team, map_bytes)) map_ = event::ServerMap();
  reach(absolute(path), mode);
  await_answers(served_, team.comm);
  int error = 0;
  leave_out(team, error);
}

bool Servers::leave_out(Team& team, int& error) {
  // One rank's message: bit i of `lost` is set if server i cannot be used.
  struct Verdict {
    std::int64_t lost = 0;
    std::int64_t error = 0;
    std::int64_t stood_ns = 0;
  } own{0, error, team.stood.count()};
  for (std::size_t i = 0; i < served_.size(); ++i)
    if (served_[i].failed()) own.lost |= std::int64_t{1} << i;
  const std::optional<std::vector<Verdict>> all = tell_all(team, own);
  // If MPI failed, no rank knows which servers the others can use, so all are left out.
  std::int64_t left = all ? 0 : -1;
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    left |= (*all)[i].lost;
    error = one_of(error, static_cast<int>((*all)[i].error));
  }
  count_standstill(team, all ? Duration{all->front().stood_ns} : Duration{});
  std::vector<Served> kept, closed;
  for (std::size_t i = 0; i < served_.size(); ++i) (left >> i & 1 ? closed : kept).push_back(std::move(served_[i]));
  close(closed);
  served_ = std::move(kept);
  return left != 0;
}

// ---- an access ---------------------------------------------------------------------------------------------------

namespace {

// One access of this rank: sends its chunks to the servers and takes their answers.
class Passage {
 public:
  // `brake` is nullptr if the access cannot be suspended. `lists`: the view is too long, so offset lists are sent
  // instead.
  Passage(std::vector<Served>& served, const Local& local, const Grid& grid, std::uint64_t operation, bool lists,
          Brake* brake)
      : served_(served),
        local_(local),
        brake_(brake),
        pieces_(local.view, local.data, grid),
        piece_(pieces_.next()),
        operation_(operation),
        lists_(lists),
        most_under_way_(2 * served.size()) {}

  // Sends as many requests as may be in flight. The step is done when nothing is left to send or receive, or MPI has
  // failed. `participants` is the number of ranks in the collective operation; 0 for an independent access.
  Step go_on(int participants);
  int error() const { return *error_; }

 private:
  Step heed_brake();
  bool may_ask() const { return *under_way_ < most_under_way_ && (!brake_ || brake_->may_begin(round_)); }
  void ask(const Piece& piece);
  void go_to_next();

  std::vector<Served>& served_;
  const Local& local_;
  Brake* brake_;
  Pieces pieces_;
  std::optional<Piece> piece_;
  std::int64_t round_ = 0;  // counts the rounds in which this rank has data
  std::uint64_t operation_;
  bool lists_;
  std::size_t most_under_way_;  // two requests per server
  // Shared with callbacks, which may run after this object is destroyed.
  std::shared_ptr<std::size_t> under_way_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<int> error_ = std::make_shared<int>(0);
  std::shared_ptr<std::int64_t> answered_ = std::make_shared<std::int64_t>(0);  // bytes
  std::int64_t told_ = 0;  // bytes of answered_ that the brake knows
  bool ended_ = false;     // the servers know that this rank sends nothing more
};

Step Passage::go_on(int participants) {
  // A lost server never answers; the access is repeated without it, or fails.
  if (any_lost(served_) || (brake_ && brake_->failed())) piece_.reset();
  Step step = heed_brake();
  while (piece_ && may_ask()) {
    if (brake_) brake_->begins(round_);
    ask(*piece_);
    go_to_next();
  }
  if (!piece_ && !ended_) {
    for (Served& one : served_)
      if (participants > 0 && !one.lost()) one.link().end(one.handle(), operation_, participants);
    ended_ = true;
  }
  step.done &= ended_ && pending(served_) == 0;
  return step;
}

// Each rank counts only the rounds in which it has data. Ranks do not wait for each other here: with common numbers,
// a rank at the front of a server's domain would have to finish it if another had begun in the middle.
void Passage::go_to_next() {
  const std::int64_t round = piece_->round;
  piece_ = pieces_.next();
  if (piece_ && piece_->round != round) ++round_;
}

// Runs before a round begins, so that the round number sent to rank 0 stays true. Servers hold requests back to merge
// them, but only for some milliseconds: nothing stays pending although no rank sends more. The step is done if the
// brake does not keep this rank here.
Step Passage::heed_brake() {
  if (!brake_) return {.done = true};
  if (*answered_ != told_) brake_->stored(*answered_ - std::exchange(told_, *answered_));
  const bool heard = brake_->hear(true);
  const bool quiet = pending(served_) == 0;
  const bool held = piece_ && quiet && !brake_->may_begin(round_);
  const bool spoke = brake_->speak(held ? std::optional(round_) : std::nullopt, !piece_ && quiet);
  return {brake_->own_part_done() || brake_->failed(), heard || spoke, brake_->awaits_messages()};
}

void Passage::ask(const Piece& piece) {
  Served& to = served_[static_cast<std::size_t>(piece.aggregator)];
  if (to.lost()) return;
  const std::int64_t bytes = piece.data.count();
  layout::Walk walk = memory_walk(local_, piece.data);
  // With shared memory, the data are always copied into the segment, from which the server writes.
  std::byte* run = to.link().shares_memory() ? nullptr : run_of(walk, local_.buffer, 0);
  auto staged = std::make_shared<transport::Staged>(run ? transport::Staged() : to.link().stage(bytes));
  const std::span<std::byte> memory = run ? bytes_at(run, bytes) : staged->bytes();
  if (memory.empty()) {
    *error_ = ENOMEM;
    return;
  }
  std::vector<layout::Segment> list;
  if (lists_) {
    layout::Segments segments = local_.view.segments(piece.data);
    while (const std::optional<layout::Segment> segment = segments.next()) list.push_back(*segment);
  }
  const transport::Place place =
      lists_ ? transport::Place(transport::List{list}) : transport::Place(transport::Viewed{view_number, piece.data});
  ++*under_way_;
  if (local_.writes) {
    if (!run) layout::gather(walk, local_.buffer, 0, memory);
    to.link().write(to.handle(), place, operation_, memory,
                    [staged, under_way = under_way_, all = error_, answered = answered_, bytes](int error, auto) {
                      --*under_way;
                      if (error == 0) *answered += bytes;
                      *all = one_of(*all, error);
                    });
    return;
  }
  to.link().read(to.handle(), place, operation_, memory,
                 [staged, under_way = under_way_, all = error_, answered = answered_, run, walk, memory,
                  buffer = local_.buffer](int error, std::int64_t got) mutable {
                   --*under_way;
                   if (error == 0) *answered += got;
                   // A short read is an error: prepare() has cut off what lies behind the end of the file.
                   if (error != 0 || got < static_cast<std::int64_t>(memory.size()))
                     *all = one_of(*all, error != 0 ? error : EIO);
                   else if (!run)
                     layout::scatter(walk, buffer, 0, memory);
                 });
}

}  // namespace

int Servers::access_own(const Local& local, std::int64_t window, const std::string& serialised) {
  if (local.data.count() == 0) return 0;
  const bool lists = serialised.size() > transport::ServerLink::most_view_bytes;
  if (!lists) served_.front().show(serialised);
  const Interval span = local.view.span(local.data);
  const Result<layout::Domains> domain = layout::Domains::make(span, 1, span.count());
  if (!domain) return EIO;
  // Operation 0 is no collective one, so the server does not hold the requests back.
  Passage passage(served_, local, Grid(domain.value(), window), 0, lists, nullptr);
  wait(served_, mpi::no_comm(), [&] { return passage.go_on(0); });
  return served_.front().lost() ? EIO : passage.error();
}

int Servers::leave() {
  Served& home = served_.front();
  home.close();
  await_answers(served_, mpi::no_comm());
  const int error = home.lost() ? EIO : home.error();
  served_.clear();
  return error;
}

std::optional<int> Servers::access(Team& team, const Local& local, const Grid& grid, const std::string& serialised,
                                   Brake* brake) {
  written_ |= local.writes;
  const bool lists = serialised.size() > transport::ServerLink::most_view_bytes;
  for (Served& one : served_)
    if (!lists) one.show(serialised);
  Passage passage(served_, local, grid, ++operation_, lists, brake);
  wait(served_, team.comm, [&] { return passage.go_on(team.ranks); });
  // The requests at a lost server end with an error, which is none of the storage: the access is repeated.
  int error = any_lost(served_) ? 0 : passage.error();
  if (brake && !brake->finish()) error = EIO;
  if (leave_out(team, error)) return std::nullopt;
  return error;
}

int Servers::sync(const Team& team) {
  auto first = std::make_shared<int>(std::exchange(behind_lost_, false) ? EIO : 0);
  written_ = false;
  for (Served& one : served_)
    if (!one.lost())
      one.link().sync(one.handle(), [first](int error, std::int64_t) { *first = *first == 0 ? error : *first; });
  await_answers(served_, team.comm);
  for (const Served& one : served_)
    if (one.lost() && one.writes_behind()) *first = EIO;
  return *first;
}

}  // namespace hocket::runtime::io
