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

// Words of an offer: process id, cookie and the cookie's address, then the address of the message of each array.
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
  int post(MPI_Comm comm, std::span<const ExchangedArray> arrays) override {
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
    std::vector<std::uint64_t> offer;  // sent; in use until the send ends
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
    std::size_t array = 0;  // index of the array that is being read
    std::int64_t at = 0;    // bytes of its message that have been read
  };
  // Bytes read in one call of test(), so that the caller soon returns to its work.
  static constexpr std::int64_t piece = std::int64_t{1} << 20;

  // The index of an array is the tag of its messages; offers and answers have tags of their own.
  int offer_tag() const { return static_cast<int>(arrays_.size()); }
  int answer_tag() const { return static_cast<int>(arrays_.size()) + 1; }
  MPI_Request* request() { return &requests_.emplace_back(mpi::no_request()); }

  // Returns the peers of `messages` in all arrays, each once.
  template <class Message>
  std::vector<int> peers(std::vector<Message> ExchangedArray::*messages) const {
    std::vector<int> ranks;
    for (const ExchangedArray& array : arrays_)
      for (const Message& m : array.*messages) ranks.push_back(m.peer);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  // Returns the message of a peer; nullptr if there is none.
  template <class Message>
  static const Message* message_of(const std::vector<Message>& messages, int peer) {
    const auto found = std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return m.peer == peer; });
    return found == messages.end() ? nullptr : &*found;
  }

  // Posts receives for the offers of all source ranks.
  int await_offers() {
    const std::size_t words = first_array_word + arrays_.size();
    for (const int rank : peers(&ExchangedArray::receives)) {
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
    for (const int rank : peers(&ExchangedArray::sends)) targets_.emplace_back().rank = rank;
    int code = MPI_SUCCESS;
    for (DestinationRank& target : targets_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Irecv)(&target.answer, sizeof target.answer, mpi::byte_type(), target.rank, answer_tag(),
                                comm_, &target.request);
    }
    return code;
  }

  int send_offers() {
    cookie_ = cookie();
    int code = MPI_SUCCESS;
    for (DestinationRank& target : targets_) {
      if (code != MPI_SUCCESS) break;
      target.offer = {static_cast<std::uint64_t>(getpid()), cookie_, reinterpret_cast<std::uint64_t>(&cookie_)};
      for (const ExchangedArray& array : arrays_) {
        const SentMessage* const m = message_of(array.sends, target.rank);
        target.offer.push_back(m ? reinterpret_cast<std::uint64_t>(m->data) : 0);
      }
      code = HOCKET_PMPI(Isend)(target.offer.data(), static_cast<int>(target.offer.size() * sizeof(std::uint64_t)),
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
    if (source.array < arrays_.size()) {
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
    for (; source.array < arrays_.size(); ++source.array, source.at = 0) {
      const ReceivedMessage* const m = message_of(arrays_[source.array].receives, source.rank);
      const std::int64_t bytes = m ? std::min(piece, m->bytes - source.at) : 0;
      if (bytes <= 0) continue;
      const std::uint64_t from = source.offer[first_array_word + source.array] + static_cast<std::uint64_t>(source.at);
      if (!read_memory(static_cast<std::int64_t>(source.offer[pid_word]), from, m->data + source.at, bytes))
        return false;
      source.at += bytes;
      return true;
    }
    return true;
  }

  // Posts the receives before it requests the messages, so that none arrives unexpectedly.
  int receive_and_answer(SourceRank& source) {
    int code = MPI_SUCCESS;
    for (std::size_t index = 0; index < arrays_.size() && code == MPI_SUCCESS; ++index) {
      const ReceivedMessage* const m = message_of(arrays_[index].receives, source.rank);
      if (!m) continue;
      code = in_pieces(m->bytes, [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Irecv)(m->data + at, bytes, mpi::byte_type(), m->peer, static_cast<int>(index), comm_,
                                  request());
      });
    }
    return code == MPI_SUCCESS ? answer(source, OfferAnswer::wants_messages) : code;
  }

  int answer(SourceRank& source, OfferAnswer answer) {
    source.over = true;
    source.answer = answer;
    return HOCKET_PMPI(Isend)(&source.answer, sizeof source.answer, mpi::byte_type(), source.rank, answer_tag(), comm_,
                              request());
  }

  int send(int target) {
    int code = MPI_SUCCESS;
    for (std::size_t index = 0; index < arrays_.size() && code == MPI_SUCCESS; ++index) {
      const SentMessage* const m = message_of(arrays_[index].sends, target);
      if (!m) continue;
      code = in_pieces(m->bytes, [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Isend)(m->data + at, bytes, mpi::byte_type(), target, static_cast<int>(index), comm_,
                                  request());
      });
    }
    return code;
  }

  MPI_Comm comm_ = mpi::no_comm();
  std::span<const ExchangedArray> arrays_;
  std::uint64_t cookie_ = 0;  // readers compare this word with the offer
  std::vector<DestinationRank> targets_;
  std::vector<SourceRank> sources_;
};

}  // namespace

std::unique_ptr<ArrayExchange> p2p_exchange() { return std::make_unique<PeerMessages>(); }

}  // namespace hocket::runtime
