#include "runtime/io/brake.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "runtime/mpi/calls.hpp"
#include "runtime/mpi/process.hpp"

namespace hocket::runtime::io {
namespace {

// Rank 0 asleep in an access hears at once that it is to stop.
struct Sleepers {
  std::mutex mutex;
  std::vector<NodeMemory*> nodes;

  static Sleepers& get() {
    static Sleepers& sleepers = *new Sleepers;
    return sleepers;
  }
  static void wake() {
    const std::lock_guard lock(get().mutex);
    for (NodeMemory* node : get().nodes) node->ring(0);
  }
  void add(NodeMemory* node) {
    const std::lock_guard lock(mutex);
    nodes.push_back(node);
  }
  void remove(NodeMemory* node) {
    const std::lock_guard lock(mutex);
    nodes.erase(std::find(nodes.begin(), nodes.end(), node));
  }
};

// A word of another access is none.
std::int64_t stamp_of(std::int64_t access, const StopWord& word) {
  return access << 32 | word.number << 4 | static_cast<std::int64_t>(word.kind);
}

}  // namespace

Brake::Brake(Team& team, std::vector<int> aggregators, std::int64_t bytes)
    : team_(team),
      aggregators_(std::move(aggregators)),
      bytes_(bytes),
      access_(++team.stoppable & 0x7fffffff),
      messages_(team.comm) {
  const bool aggregates = std::find(aggregators_.begin(), aggregators_.end(), team.rank) != aggregators_.end();
  if (aggregates) own_.emplace();
  own_ended_ = !aggregates;
  if (team.node && team.node->shares(team.rank)) {
    team.node->post(team.rank).bytes.store(0, std::memory_order_relaxed);
    write_post({});
  }
  if (team.rank != 0) {
    dismissed_ = !aggregates || by_memory(0);
    if (!dismissed_) receive_orders();
    return;
  }
  Process::begins_to_move();
  leader_.emplace(aggregators_.size());
  told_bytes_.resize(aggregators_.size());
  for (const int rank : aggregators_)
    if (rank != 0 && !by_memory(rank)) ++by_messages_;
  if (by_messages_ > 0) receive_reports();
  Process::on_pause(Sleepers::wake);
  if (team.node) Sleepers::get().add(team.node.get());
}

Brake::~Brake() {
  if (leader_ && team_.node) Sleepers::get().remove(team_.node.get());
}

// ---- carrying words ----------------------------------------------------------------------------------------------

// The round of a word stands until its receiver has answered, so it is never read of another than the stamp's.
void Brake::write_post(const StopWord& word) {
  NodeMemory::Post& post = team_.node->post(team_.rank);
  if (has_round(word.kind)) post.round.store(word.round, std::memory_order_relaxed);
  post.stamp.store(stamp_of(access_, word), std::memory_order_release);
  std::atomic_thread_fence(
      std::memory_order_seq_cst);  // before the posts of others are read: a word and its answer cannot miss each other
}

StopWord Brake::read_post(int rank) const {
  const NodeMemory::Post& post = team_.node->post(rank);
  const std::int64_t stamp = post.stamp.load(std::memory_order_acquire);
  if (!is_of_this_access(stamp)) return {};
  const StopWord word{static_cast<Kind>(stamp & 0xf), stamp >> 4 & 0xfffffff, -1};
  return {word.kind, word.number, has_round(word.kind) ? post.round.load(std::memory_order_relaxed) : -1};
}

void Brake::send(Way way, int rank, const StopWord& word) {
  const auto note = std::make_shared<Note>(
      Note{team_.rank, static_cast<std::int64_t>(word.kind), word.number, word.round, own_bytes_});
  messages_.send(way, reinterpret_cast<const std::byte*>(note.get()), sizeof(Note), rank, [note] {});
}

void Brake::receive_orders() {
  const auto note = std::make_shared<Note>();
  messages_.receive(Way::from_leader, reinterpret_cast<std::byte*>(note.get()), sizeof(Note), 0, [this, note] {
    const StopWord word{static_cast<Kind>(note->kind), note->number, note->round};
    dismissed_ = word.kind == Kind::silent;
    if (dismissed_) return;
    obey(word);
    receive_orders();
  });
}

void Brake::receive_reports() {
  const auto note = std::make_shared<Note>();
  messages_.receive(Way::to_leader, reinterpret_cast<std::byte*>(note.get()), sizeof(Note), MPI_ANY_SOURCE,
                    [this, note] {
                      const int rank = static_cast<int>(note->rank);
                      const StopWord word{static_cast<Kind>(note->kind), note->number, note->round};
                      const auto which = std::find(aggregators_.begin(), aggregators_.end(), rank);
                      told_bytes_[static_cast<std::size_t>(which - aggregators_.begin())] = note->bytes;
                      lead_from(rank, word);
                      if (word.kind == Kind::ended) {
                        send(Way::from_leader, rank, {});  // it waits for that: no word to it comes later
                        --by_messages_;
                      }
                      if (by_messages_ > 0) receive_reports();
                    });
}

// ---- as an aggregator --------------------------------------------------------------------------------------------

void Brake::stored(std::int64_t bytes) {
  own_bytes_ += bytes;
  if (leader_) Process::get().progress(bytes_moved());
  if (by_memory(team_.rank)) team_.node->post(team_.rank).bytes.store(own_bytes_, std::memory_order_relaxed);
}

bool Brake::hear(bool idle) {
  constexpr unsigned most_passes = 16;
  const bool looks = idle || awaits_messages() || ++passes_ == most_passes;
  bool heard = looks && messages_.poll();
  if (looks) passes_ = 0;
  if (!leader_ && own_ && !own_ended_ && by_memory(0)) heard |= obey(read_post(0));
  return heard;
}

// The time in which this rank stands still is a wait for the grant, in each as in rank 0.
bool Brake::obey(const StopWord& word) {
  const bool heard = own_->hear(word);
  if (heard && word.kind == Kind::go) stands_no_more();
  return heard;
}

void Brake::stands_no_more() {
  if (standing_since_ == Time{}) return;
  const Duration stood = node_now() - std::exchange(standing_since_, Time{});
  Process::waited(stood);
  team_.stood += stood;
}

bool Brake::speak(std::optional<std::int64_t> held, bool ended) {
  bool spoke = false;
  if (const std::optional<StopWord> word = own_ ? own_->speak(held, ended) : std::nullopt) {
    own_ended_ = own_->has_ended();
    if (own_ended_) stands_no_more();  // what was left has failed
    if (word->kind == Kind::at && !leader_) standing_since_ = node_now();
    say(*word);
    spoke = true;
  }
  return (leader_ && lead()) || spoke;
}

void Brake::say(const StopWord& word) {
  if (leader_) return lead_from(0, word);
  if (!by_memory(0)) return send(Way::to_leader, 0, word);
  write_post(word);
  if (word.kind != Kind::ended || is_asked()) team_.node->ring(0);
}

// Rank 0 sleeps for answers to what it has said; at its end it looks by itself. To wake it for each that ends cost more
// than all else that a brake does.
bool Brake::is_asked() const {
  const Kind said = read_post(0).kind;
  return said == Kind::stop || said == Kind::until;
}

// ---- as rank 0 ---------------------------------------------------------------------------------------------------

void Brake::lead_from(int rank, const StopWord& word) {
  const auto which = std::find(aggregators_.begin(), aggregators_.end(), rank);
  leader_->hear(static_cast<std::size_t>(which - aggregators_.begin()), word);
}

// Another application is to go first, or this one is ahead of its share of the target.
bool Brake::is_wanted() const {
  if (Process::pause_wanted() && Process::changes() != others_) return true;
  return Process::get().has_share() && Process::get().ahead_of_share(bytes_moved(own_bytes_));
}

bool Brake::lead() {
  const bool wanted = is_wanted();
  if (!wanted && !leader_->asks() && !own_ended_) return false;
  for (std::size_t i = 0; i < aggregators_.size(); ++i)
    if (aggregators_[i] != 0 && by_memory(aggregators_[i])) leader_->hear(i, read_post(aggregators_[i]));
  if (const std::optional<StopWord> word = leader_->speak(wanted)) {
    say_to_all(*word);
    return true;
  }
  const std::optional<std::int64_t> round = leader_->stopped_at();
  if (!round) return false;
  const Time since = node_now();
  if (Process::get().has_share()) Process::get().fall_back_to_share(bytes_moved());
  const std::uint64_t changes = Process::changes();
  others_ = Process::get().pause(bytes_moved(), *round) ? 0 : changes;
  team_.stood += node_now() - since;
  say_to_all(leader_->go());
  return true;
}

void Brake::say_to_all(const StopWord& word) {
  if (by_memory(0)) write_post(word);
  for (std::size_t i = 0; i < aggregators_.size(); ++i) {
    const int rank = aggregators_[i];
    if (leader_->has_ended(i)) continue;
    if (rank == 0)
      own_->hear(word);
    else if (by_memory(rank))
      team_.node->ring(rank);
    else
      send(Way::from_leader, rank, word);
  }
}

// Of those that tell it by messages it is known where they stop, or have ended; until then they are taken to have moved
// `otherwise`, if that is more than they have told.
std::int64_t Brake::bytes_moved(std::int64_t otherwise) const {
  std::int64_t all = own_bytes_;
  for (std::size_t i = 0; i < aggregators_.size(); ++i) {
    const int rank = aggregators_[i];
    if (rank == 0) continue;
    if (!by_memory(rank)) {
      all += leader_->has_ended(i) ? told_bytes_[i] : std::max(told_bytes_[i], otherwise);
      continue;
    }
    const NodeMemory::Post& post = team_.node->post(rank);
    if (is_of_this_access(post.stamp.load(std::memory_order_acquire)))
      all += post.bytes.load(std::memory_order_relaxed);
  }
  return std::min(all, bytes_);
}

// ---- the end -----------------------------------------------------------------------------------------------------

bool Brake::own_part_done() const { return own_ended_ && dismissed_ && (leader_ || messages_.empty()); }

bool Brake::finish() {
  mpi::Patience patience;
  while (leader_ && !given_up_ && !failed() && !(leader_->all_ended() && messages_.empty())) {
    const bool heard = hear(true);
    if (lead() || heard) {
      patience = mpi::Patience();
      continue;
    }
    patience.pause();
    mpi::push(team_.comm);  // others may still wait for words of ours that MPI holds
  }
  if (failed()) give_up();
  return !given_up_;
}

bool Brake::awaits_messages() const {
  if (!leader_) return !dismissed_ && (own_ended_ || own_->told_to_stop());
  return by_messages_ > 0 && leader_->asks();
}

void Brake::give_up() {
  if (std::exchange(given_up_, true)) return;
  if (!by_memory(0)) return;
  if (leader_ || own_) write_post({leader_ ? Kind::go : Kind::ended, 0, -1});
  for (const int rank : aggregators_)
    if (leader_ && by_memory(rank)) team_.node->ring(rank);
  if (!leader_) team_.node->ring(0);
}

void count_standstill(Team& team, Duration all_stood) {
  if (all_stood > team.stood) Process::waited(all_stood - team.stood);
  team.stood = {};
}

}  // namespace hocket::runtime::io
