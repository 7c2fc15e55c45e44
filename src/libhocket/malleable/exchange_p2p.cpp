// Point-to-point transfer: messages from each source rank to each destination rank, all in flight at once.
//
// A source rank offers its data. The destination rank requests the messages once it has posted its receives: MPICH over
// TCP puts an unexpected message of any size into memory of its own, as large as the message.
//
// With HOCKET_SINGLE_COPY=1 a destination rank of the same node reads the data directly from the source's memory, by
// one copy of the kernel's (process_vm_readv), and reports when it has; the source has nothing to do meanwhile. It is
// not the default, because messages were measured to be faster (bench/README.md). Where reading is impossible, messages
// are used.
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "malleable/exchange.hpp"
#include "mpi_shim/pmpi.hpp"

namespace hocket::runtime {
namespace {

// Returns a random number that a reader checks first: the same process id may name another process in another PID
// namespace.
std::uint64_t cookie() {
  static const std::uint64_t value = [] {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = static_cast<std::uint64_t>(getpid());
    return random;
  }();
  return value;
}

// Words of an offer: process id, cookie and the cookie's address, then the address of each array's `from`.
enum OfferWord : std::size_t { pid_word, cookie_word, cookie_at_word, first_array_word };

// Answer of a destination rank to an offer.
enum class OfferAnswer : std::int64_t { none, has_read, wants_messages };

// Reads memory of another process. Returns false if the kernel does not allow it, or if the process has ended.
bool read_memory(std::int64_t pid, std::uint64_t from, std::byte* to, std::int64_t bytes) {
  while (bytes > 0) {
    const iovec local{to, static_cast<std::size_t>(bytes)};
    // An address in the other process. NOLINTNEXTLINE(performance-no-int-to-ptr)
    const iovec remote{reinterpret_cast<void*>(from), static_cast<std::size_t>(bytes)};
    const ssize_t count = process_vm_readv(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    from += static_cast<std::uint64_t>(count);
    bytes -= count;
  }
  return true;
}

class PeerMessages final : public ArrayExchange {
 public:
  int post(MPI_Comm comm, std::span<const ArrayTransfer> arrays) override {
    comm_ = comm;
    arrays_ = arrays;
    int code = await_offers();
    if (code == MPI_SUCCESS) code = await_answers();
    return code == MPI_SUCCESS ? send_offers() : code;
  }

  int test(bool& ended) override {
    bool all = true;
    int code = MPI_SUCCESS;
    for (DestinationRank& target : targets_)
      if (code == MPI_SUCCESS) code = test_target(target, all);
    for (SourceRank& source : sources_)
      if (code == MPI_SUCCESS) code = test_source(source, all);
    bool here_ended = false;
    if (code == MPI_SUCCESS) code = ArrayExchange::test(here_ended);
    ended = all && here_ended;
    return code;
  }

  int close() override { return MPI_SUCCESS; }

 private:
  // Peers of this rank: destinations of its data, and sources of what it receives. Requests and buffers keep their
  // addresses, because MPI uses them.
  struct DestinationRank {
    int rank = 0;
    OfferAnswer answer = OfferAnswer::none;
    MPI_Request request{};
    bool over = false;  // nothing more has to be started for it
  };
  struct SourceRank {
    int rank = 0;
    std::vector<std::uint64_t> offer;  // received words
    OfferAnswer answer = OfferAnswer::none;
    MPI_Request request{};
    bool offered = false;
    bool over = false;
    std::size_t place = 0;    // index of the array that is being read
    std::size_t message = 0;  // its message
    std::int64_t at = 0;      // bytes of it that have been read
  };
  // Bytes read in one call of test(), so that the caller soon returns to its work.
  static constexpr std::int64_t piece = std::int64_t{1} << 20;

  // The index of an array is the tag of its messages; offers and answers have tags of their own.
  int offer_tag() const { return static_cast<int>(arrays_.size()); }
  int answer_tag() const { return static_cast<int>(arrays_.size()) + 1; }
  MPI_Request* request() { return &requests_.emplace_back(mpi::no_request()); }

  // Returns the ranks that the plans name in `messages`, each once.
  std::vector<int> peers(std::vector<redistribute::Message> redistribute::RedistributionPlan::*messages) const {
    std::vector<int> ranks;
    for (const ArrayTransfer& array : arrays_) {
      for (const redistribute::Message& m : array.plan.*messages) ranks.push_back(m.peer);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  // Posts receives for the offers of all source ranks.
  int await_offers() {
    const std::size_t words = first_array_word + arrays_.size();
    for (const int rank : peers(&redistribute::RedistributionPlan::receives)) {
      SourceRank& source = sources_.emplace_back();
      source.rank = rank;
      source.offer.resize(words);
    }
    int code = MPI_SUCCESS;
    for (SourceRank& source : sources_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Irecv)(source.offer.data(), static_cast<int>(words * sizeof(std::uint64_t)), mpi::byte_type(),
                                source.rank, offer_tag(), comm_, &source.request);
    }
    return code;
  }

  // Posts receives for the answers of all destination ranks.
  int await_answers() {
    for (const int rank : peers(&redistribute::RedistributionPlan::sends)) targets_.emplace_back().rank = rank;
    int code = MPI_SUCCESS;
    for (DestinationRank& target : targets_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Irecv)(&target.answer, sizeof target.answer, mpi::byte_type(), target.rank, answer_tag(),
                                comm_, &target.request);
    }
    return code;
  }

  int send_offers() {
    const std::uint64_t own = cookie();
    cookie_ = own;
    offer_ = {static_cast<std::uint64_t>(getpid()), own, reinterpret_cast<std::uint64_t>(&cookie_)};
    for (const ArrayTransfer& array : arrays_) offer_.push_back(reinterpret_cast<std::uint64_t>(array.from));
    int code = MPI_SUCCESS;
    for (const DestinationRank& target : targets_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Isend)(offer_.data(), static_cast<int>(offer_.size() * sizeof(std::uint64_t)),
                                mpi::byte_type(), target.rank, offer_tag(), comm_, request());
    }
    return code;
  }

  // Sends the messages if the destination rank has requested them. `all` becomes false while an answer is due.
  int test_target(DestinationRank& target, bool& all) {
    if (target.over) return MPI_SUCCESS;
    int here = 0;
    const int code = HOCKET_PMPI(Test)(&target.request, &here, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || !here) {
      all = false;
      return code;
    }
    target.over = true;
    return target.answer == OfferAnswer::wants_messages ? send(target.rank) : MPI_SUCCESS;
  }

  // Takes an offer, then reads the next chunk, or requests messages. `all` becomes false while anything is left.
  int test_source(SourceRank& source, bool& all) {
    if (source.over) return MPI_SUCCESS;
    if (!source.offered) {
      int here = 0;
      const int code = HOCKET_PMPI(Test)(&source.request, &here, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS || !here) {
        all = false;
        return code;
      }
      source.offered = true;
      if (!is_readable(source)) return receive_and_answer(source);
    }
    if (!read_some(source)) {
      // Data that were read before are received again as messages.
      return receive_and_answer(source);
    }
    if (source.place < arrays_.size()) {
      all = false;
      return MPI_SUCCESS;
    }
    return answer(source, OfferAnswer::has_read);
  }

  static bool is_readable(const SourceRank& source) {
    const char* allowed = std::getenv("HOCKET_SINGLE_COPY");
    if (!allowed || *allowed != '1') return false;
    std::uint64_t seen = 0;
    return read_memory(static_cast<std::int64_t>(source.offer[pid_word]), source.offer[cookie_at_word],
                       reinterpret_cast<std::byte*>(&seen), sizeof seen) &&
           seen == source.offer[cookie_word];
  }

  // Reads the next chunk, if there is one. Returns false if it cannot be read.
  bool read_some(SourceRank& source) {
    for (; source.place < arrays_.size(); ++source.place, source.message = 0) {
      const ArrayTransfer& array = arrays_[source.place];
      const auto& receives = array.plan.receives;
      for (; source.message < receives.size(); ++source.message, source.at = 0) {
        const redistribute::Message& m = receives[source.message];
        if (m.peer != source.rank) continue;
        const std::int64_t bytes = std::min(piece, bytes_of(array, m) - source.at);
        if (bytes <= 0) continue;
        const std::int64_t offset = (m.elements.first - m.first_of_peer) * array.element_bytes + source.at;
        if (!read_memory(static_cast<std::int64_t>(source.offer[pid_word]),
                         source.offer[first_array_word + source.place] + static_cast<std::uint64_t>(offset),
                         received_to(array, m) + source.at, bytes))
          return false;
        source.at += bytes;
        return true;
      }
    }
    return true;
  }

  // Posts the receives before it requests the messages, so that none arrives unexpectedly.
  int receive_and_answer(SourceRank& source) {
    int code = MPI_SUCCESS;
    for (std::size_t place = 0; place < arrays_.size() && code == MPI_SUCCESS; ++place)
      code = receive(place, source.rank);
    return code == MPI_SUCCESS ? answer(source, OfferAnswer::wants_messages) : code;
  }

  int answer(SourceRank& source, OfferAnswer answer) {
    source.over = true;
    source.answer = answer;
    return HOCKET_PMPI(Isend)(&source.answer, sizeof source.answer, mpi::byte_type(), source.rank, answer_tag(), comm_,
                              request());
  }

  int receive(std::size_t place, int from) {
    const ArrayTransfer& array = arrays_[place];
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (m.peer != from || code != MPI_SUCCESS) continue;
      std::byte* to = received_to(array, m);
      code = in_pieces(bytes_of(array, m), [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Irecv)(to + at, bytes, mpi::byte_type(), m.peer, static_cast<int>(place), comm_, request());
      });
    }
    return code;
  }

  int send(int target) {
    int code = MPI_SUCCESS;
    for (std::size_t place = 0; place < arrays_.size(); ++place) {
      for (const redistribute::Message& m : arrays_[place].plan.sends) {
        if (m.peer != target || code != MPI_SUCCESS) continue;
        const std::byte* from = sent_from(arrays_[place], m);
        code = in_pieces(bytes_of(arrays_[place], m), [&](std::int64_t at, int bytes) {
          return HOCKET_PMPI(Isend)(from + at, bytes, mpi::byte_type(), target, static_cast<int>(place), comm_,
                                    request());
        });
      }
    }
    return code;
  }

  MPI_Comm comm_ = mpi::no_comm();
  std::span<const ArrayTransfer> arrays_;
  std::vector<std::uint64_t> offer_;  // sent to every destination; in use until the sends end
  std::uint64_t cookie_ = 0;          // readers compare this word with the offer
  std::vector<DestinationRank> targets_;
  std::vector<SourceRank> sources_;
};

}  // namespace

std::unique_ptr<ArrayExchange> p2p_exchange() { return std::make_unique<PeerMessages>(); }

}  // namespace hocket::runtime
