// The words of stopping.hpp between the ranks of a file: through the memory of rank 0's node where an aggregator shares
// it, else by messages. Rank 0 leads: it has the connection to hocketd.
//
// While nobody is to stop, rank 0 looks at some atomic variables in each pass of its access and the others at rank 0's
// last word, or at one receive; each aggregator says at its end that it is done. Where rank 0 knows that the
// application has a part of the target's bandwidth, it also looks at the time, and at what all have moved.
#pragma once

#include <optional>
#include <vector>

#include "base/time.hpp"
#include "runtime/io/exchange.hpp"
#include "runtime/io/stopping.hpp"

namespace hocket::runtime::io {

// Of one access. All ranks of the file make one, for the same accesses.
class Brake {
 public:
  // `aggregators`: the ranks that have rounds, the same in all ranks; `bytes`: of all data.
  Brake(Team& team, std::vector<int> aggregators, std::int64_t bytes);
  ~Brake();
  Brake(const Brake&) = delete;
  Brake& operator=(const Brake&) = delete;

  // Of this rank as an aggregator.
  bool may_begin(std::int64_t round) const { return own_->may_begin(round); }
  void begins(std::int64_t round) { own_->begins(round); }
  void stored(std::int64_t bytes);

  // Called in each pass of the access, one after the other; true: something has gone on. `idle`: nothing has in the
  // pass before; where much goes on, MPI is looked at now and then, which costs about as much as all the rest of a
  // pass.
  bool hear(bool idle);
  // `held` and `ended`: as Stopping::speak says, after `hear`; of a rank without rounds, it has ended. In rank 0 it
  // returns when the access may go on, if all others stand still.
  bool speak(std::optional<std::int64_t> held, bool ended);
  // Nothing is left to be heard or said but by rank 0, which has the others to wait for.
  bool own_part_done() const;
  // After that; false: MPI has failed. In rank 0 it leads on until all others have ended, without sleeping for long.
  bool finish();
  // Words under way as messages are all that this rank waits for.
  bool awaits_messages() const;
  bool failed() const { return messages_.failed(); }
  // MPI has failed, this rank ends: nobody is to wait for it.
  void give_up();

 private:
  struct Note {
    std::int64_t rank, kind, number, round, bytes;
  };
  using Way = Messages::Way;
  using Kind = StopWord::Kind;

  bool by_memory(int rank) const { return team_.node && team_.node->shares(rank); }
  bool is_of_this_access(std::int64_t stamp) const { return stamp >> 32 == access_; }
  static bool has_round(Kind kind) { return kind == Kind::until || kind == Kind::begun || kind == Kind::at; }
  void lead_from(int rank, const StopWord& word);
  bool lead();
  void say_to_all(const StopWord& word);
  void say(const StopWord& word);
  bool is_asked() const;
  void send(Way way, int rank, const StopWord& word);
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
  unsigned passes_ = 0;  // in which MPI was not looked at
  std::int64_t own_bytes_ = 0;
  std::optional<Stopping> own_;
  bool own_ended_ = false;
  bool given_up_ = false;
  Time standing_since_{};  // that it waits to go on; none: it does not
  bool dismissed_ = true;  // rank 0 has nothing more to say to us by messages
  // In rank 0.
  std::optional<StopLeader> leader_;
  std::vector<std::int64_t> told_bytes_;  // by aggregator, by messages
  std::size_t by_messages_ = 0;           // aggregators that have not ended
  std::uint64_t others_ = 0;  // Process::changes() when what is to pause was an access of another thread alone
};

// At the end of an access in which all stood still for so long, as rank 0 knows: who has not counted that as a wait, as
// it only waited for others, does so now.
void count_standstill(Team& team, Duration all_stood);

}  // namespace hocket::runtime::io
