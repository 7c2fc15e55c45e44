#include "collective/brake.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "mpi_shim/calls.hpp"
#include "process/grants.hpp"
#include "process/reporter.hpp"

namespace hocket::runtime::collective {
namespace {

// Wakes rank 0 from its sleep in an access as soon as the application must pause. The helper thread calls
// wake(). The object is never destroyed, because that thread may outlive static destructors.
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

// Packs access, number and kind of a message into one atomic word. Readers ignore a stamp of another access.
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
  // Only rank 0 leads, and only it knows the grant.
  grants::begins_to_move();
  leader_.emplace(aggregators_.size());
  told_bytes_.resize(aggregators_.size());
  for (const int rank : aggregators_)
    if (rank != 0 && !by_memory(rank)) ++by_messages_;
  if (by_messages_ > 0) receive_reports();
  on_pause(Sleepers::wake);
  if (team.node) Sleepers::get().add(team.node.get());
}

Brake::~Brake() {
  if (leader_ && team_.node) Sleepers::get().remove(team_.node.get());
}

// ---- carrying messages -------------------------------------------------------------------------------------------

// Publishes this rank's message for the ranks of the node. The round stays unchanged until the receiver has answered,
// so it always belongs to the stamp that was read with it.
void Brake::write_post(const StopWord& word) {
  NodeMemory::Post& post = team_.node->post(team_.rank);
  if (has_round(word.kind)) post.round.store(word.round, std::memory_order_relaxed);
  post.stamp.store(stamp_of(access_, word), std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // orders this store before reads of other posts: a message and
                                                        // its answer cannot miss each other
}

// Returns the last message of a rank of the node in this access; `silent` if there is none yet.
StopWord Brake::read_post(int rank) const {
  const NodeMemory::Post& post = team_.node->post(rank);
  const std::int64_t stamp = post.stamp.load(std::memory_order_acquire);
  if (!is_of_this_access(stamp)) return {};
  const StopWord word{static_cast<StopWord::Signal>(stamp & 0xf), stamp >> 4 & 0xfffffff, -1};
  return {word.kind, word.number, has_round(word.kind) ? post.round.load(std::memory_order_relaxed) : -1};
}

void Brake::send(Messages::Way way, int rank, const StopWord& word) {
  const auto note = std::make_shared<Note>(
      Note{team_.rank, static_cast<std::int64_t>(word.kind), word.number, word.round, own_bytes_});
  messages_.send(way, reinterpret_cast<const std::byte*>(note.get()), sizeof(Note), rank, [note] {});
}

// Receives one MPI message of rank 0 after the other. A `silent` message dismisses this rank: none will follow.
void Brake::receive_orders() {
  const auto note = std::make_shared<Note>();
  messages_.receive(Messages::Way::from_leader, reinterpret_cast<std::byte*>(note.get()), sizeof(Note), 0,
                    [this, note] {
                      const StopWord word{static_cast<StopWord::Signal>(note->kind), note->number, note->round};
                      dismissed_ = word.kind == StopWord::Signal::silent;
                      if (dismissed_) return;
                      obey(word);
                      receive_orders();
                    });
}

// Receives the MPI messages of aggregators, until all of them have ended.
void Brake::receive_reports() {
  const auto note = std::make_shared<Note>();
  messages_.receive_from_any(Messages::Way::to_leader, std::as_writable_bytes(std::span(note.get(), 1)), [this, note] {
    const int rank = static_cast<int>(note->rank);
    const StopWord word{static_cast<StopWord::Signal>(note->kind), note->number, note->round};
    const auto which = std::find(aggregators_.begin(), aggregators_.end(), rank);
    told_bytes_[static_cast<std::size_t>(which - aggregators_.begin())] = note->bytes;
    lead_from(rank, word);
    if (word.kind == StopWord::Signal::ended) {
      send(Messages::Way::from_leader, rank, {});  // dismisses it: no message to it follows
      --by_messages_;
    }
    if (by_messages_ > 0) receive_reports();
  });
}

// ---- as an aggregator --------------------------------------------------------------------------------------------

void Brake::stored(std::int64_t bytes) {
  own_bytes_ += bytes;
  if (leader_) grants::progress(bytes_moved());
  if (by_memory(team_.rank)) team_.node->post(team_.rank).bytes.store(own_bytes_, std::memory_order_relaxed);
}

bool Brake::hear(bool idle) {
  constexpr unsigned most_passes = 16;
  // Polling MPI costs about as much as the rest of a pass, so a busy access does it every 16th pass.
  const bool looks = idle || awaits_messages() || ++passes_ == most_passes;
  bool heard = looks && messages_.poll();
  if (looks) passes_ = 0;
  if (!leader_ && own_ && !own_ended_ && by_memory(0)) heard |= obey(read_post(0));
  return heard;
}

// Passes rank 0's message on to the state machine. After a resume, the time that this rank was suspended counts as a
// wait for the grant, in each rank as in rank 0.
bool Brake::obey(const StopWord& word) {
  const bool heard = own_->hear(word);
  if (heard && word.kind == StopWord::Signal::go) stands_no_more();
  return heard;
}

// Ends the suspension of this rank, if there is one, and counts its time.
void Brake::stands_no_more() {
  if (standing_since_ == Time{}) return;
  const Duration stood = node_now() - std::exchange(standing_since_, Time{});
  grants::waited(stood);
  team_.stood += stood;
}

bool Brake::speak(std::optional<std::int64_t> held, bool ended) {
  bool spoke = false;
  if (const std::optional<StopWord> word = own_ ? own_->speak(held, ended) : std::nullopt) {
    own_ended_ = own_->has_ended();
    if (own_ended_) stands_no_more();  // its remaining rounds have failed
    if (word->kind == StopWord::Signal::at && !leader_) standing_since_ = node_now();
    say(*word);
    spoke = true;
  }
  return (leader_ && lead()) || spoke;
}

void Brake::say(const StopWord& word) {
  if (leader_) return lead_from(0, word);
  if (!by_memory(0)) return send(Messages::Way::to_leader, 0, word);
  write_post(word);
  if (word.kind != StopWord::Signal::ended || is_asked()) team_.node->ring(0);
}

// True if rank 0 waits for an answer. Otherwise an aggregator that ends does not wake rank 0, which polls at its own
// end: waking it for each end cost more than all the rest of this class.
bool Brake::is_asked() const {
  const StopWord::Signal said = read_post(0).kind;
  return said == StopWord::Signal::stop || said == StopWord::Signal::until;
}

// ---- as rank 0 ---------------------------------------------------------------------------------------------------

// Gives the leader a message of an aggregator. Precondition: `rank` is an aggregator.
void Brake::lead_from(int rank, const StopWord& word) {
  const auto which = std::find(aggregators_.begin(), aggregators_.end(), rank);
  leader_->hear(static_cast<std::size_t>(which - aggregators_.begin()), word);
}

// True if another application has precedence, or this one is ahead of its bandwidth share. After a pause that
// concerned another thread's access only, nothing is wanted until some request changes its state.
bool Brake::is_wanted() const {
  if (hot.is_pause_wanted() && grants::changes() != others_) return true;
  return grants::has_share() && grants::ahead_of_share(bytes_moved(own_bytes_));
}

// Rank 0's part of each pass: collects answers, sends the next message, and blocks while all are suspended.
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
  // All aggregators have stopped: wait for the bandwidth share, then answer hocketd's pause, if there is one.
  if (grants::has_share()) grants::fall_back_to_share(bytes_moved());
  const std::uint64_t changes = grants::changes();
  others_ = grants::pause(bytes_moved(), *round) ? 0 : changes;
  team_.stood += node_now() - since;
  say_to_all(leader_->go());
  return true;
}

// Sends rank 0's message to all aggregators that have not ended. One post serves all ranks of the node.
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
      send(Messages::Way::from_leader, rank, word);
  }
}

// Returns the bytes that all ranks have moved. Aggregators that report by MPI do so only where they stop or end;
// until then each is taken to have moved `otherwise` bytes, if that is more than it has reported.
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
    mpi::push(team_.comm);  // other ranks may wait for messages of this one that MPI still holds
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
  // Ranks of the node read posts, so they learn by shared memory that this rank has left.
  if (leader_ || own_) write_post({leader_ ? StopWord::Signal::go : StopWord::Signal::ended, 0, -1});
  for (const int rank : aggregators_)
    if (leader_ && by_memory(rank)) team_.node->ring(rank);
  if (!leader_) team_.node->ring(0);
}

void count_standstill(Team& team, Duration all_stood) {
  if (all_stood > team.stood) grants::waited(all_stood - team.stood);
  team.stood = {};
}

}  // namespace hocket::runtime::collective
