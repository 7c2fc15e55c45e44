// Carries the stop messages of stopping.hpp between the ranks of a file during one collective access, so that hocketd
// can suspend it between two rounds. Messages go through the memory of rank 0's node where an aggregator shares it,
// else by MPI. Rank 0 leads, because it has the connection to hocketd.
//
// While no suspension is requested, the cost is small. Rank 0 reads some atomic variables in each pass of its access;
// the others read rank 0's last message, or test one receive; each aggregator sends one message at its end. If the
// application has only a share of the target's bandwidth, rank 0 also looks at the time and at the bytes that all
// have moved.
#pragma once

#include <optional>
#include <vector>

#include "base/time.hpp"
#include "collective/exchange.hpp"
#include "collective_plan/stopping.hpp"
#include "io_client/transfer.hpp"

namespace hocket::runtime::collective {

using namespace collective_plan;  // its terms are those of this room

// The part of one rank in one access. All ranks of the file make one for the same accesses, in the same order; the
// thread that performs the access calls it. Here *aggregators* are the ranks that have rounds: aggregators of an
// exchange, or all ranks with data where each accesses its own.
class Brake final : public io_client::RoundGate {
 public:
  // `aggregators` lists the ranks that have rounds, the same in all ranks; `bytes` counts the data of all ranks.
  // `team` must outlive the object.
  Brake(Team& team, std::vector<int> aggregators, std::int64_t bytes);
  ~Brake() override;
  Brake(const Brake&) = delete;
  Brake& operator=(const Brake&) = delete;

  // Progress of this rank as an aggregator, as in Stopping. stored() adds bytes of a round that is on the storage, or
  // was read. Precondition: this rank is in `aggregators`.
  bool may_begin(std::int64_t round) const override { return own_->may_begin(round); }
  void begins(std::int64_t round) override { own_->begins(round); }
  void stored(std::int64_t bytes) override;

  // Receives stop messages; call it in each pass of the access, before speak(). Returns true if it made progress.
  // `idle` says that the pass before made none. In a busy access MPI is polled only now and then, because a poll
  // costs about as much as the rest of a pass.
  bool hear(bool idle) override;
  // Sends the stop messages that are due; call it after hear(). `held` and `ended` are as in Stopping::speak; a rank
  // without rounds has ended. In rank 0, if all aggregators have stopped, it blocks until the access may resume.
  // Returns true if it made progress.
  bool speak(std::optional<std::int64_t> held, bool ended) override;
  // True if this rank has no further message to send or receive. Rank 0 may still have to wait for others, in finish().
  bool own_part_done() const override;
  // Ends this rank's part; call it once own_part_done() is true. Rank 0 leads on until all aggregators have ended, in
  // short sleeps. Returns false if MPI has failed.
  bool finish();
  // True if this rank waits for stop messages by MPI, which no futex announces: it must not sleep in
  // NodeMemory::sleep().
  bool awaits_messages() const override;
  bool failed() const override { return messages_.failed(); }
  // Releases the ranks of the node that wait for this one, after MPI has failed.
  void give_up();

 private:
  // A stop message as sent by MPI: sender, StopWord and bytes moved by the sender.
  struct Note {
    std::int64_t rank, kind, number, round, bytes;
  };

  bool by_memory(int rank) const { return team_.node && team_.node->shares(rank); }
  bool is_of_this_access(std::int64_t stamp) const { return stamp >> 32 == access_; }
  static bool has_round(StopWord::Signal kind) {
    return kind == StopWord::Signal::until || kind == StopWord::Signal::begun || kind == StopWord::Signal::at;
  }
  void lead_from(int rank, const StopWord& word);
  bool lead();
  void say_to_all(const StopWord& word);
  void say(const StopWord& word);
  bool is_asked() const;
  void send(Messages::Way way, int rank, const StopWord& word);
  void receive_reports();
  void receive_orders();
  bool obey(const StopWord& word);
  void stands_no_more();
  void write_post(const StopWord& word);
  StopWord read_post(int rank) const;
  std::int64_t bytes_moved(std::int64_t otherwise = 0) const;
  bool is_wanted() const;

  Team& team_;
  const std::vector<int> aggregators_;
  const std::int64_t bytes_;
  const std::int64_t access_;
  Messages messages_;
  unsigned passes_ = 0;  // passes since MPI was polled
  std::int64_t own_bytes_ = 0;
  std::optional<Stopping> own_;
  bool own_ended_ = false;
  bool given_up_ = false;
  Time standing_since_{};  // start of the current suspension; none: not suspended
  bool dismissed_ = true;  // rank 0 sends this rank no further MPI message
  // State of rank 0, the leader.
  std::optional<StopLeader> leader_;
  std::vector<std::int64_t> told_bytes_;  // by aggregator: bytes moved, as sent by MPI
  std::size_t by_messages_ = 0;           // aggregators that send by MPI and have not ended
  std::uint64_t others_ = 0;              // grants::changes() when the pause concerned another thread's access only
};

// Counts the suspension of the access that just ended. `all_stood` is its duration in rank 0; a rank that was not
// held itself, but only waited for others, counts the difference as a wait for the grant now.
void count_standstill(Team& team, Duration all_stood);

}  // namespace hocket::runtime::collective
