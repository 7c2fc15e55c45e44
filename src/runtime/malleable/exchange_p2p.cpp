// From each source to each target, all of it under way at once.
//
// A source offers its data. A target asks for messages when it waits for them: MPICH over TCP receives a message of any
// size that nobody waits for into memory of its own, as large as the message.
//
// With HOCKET_SINGLE_COPY=1 a target of the same node reads the data from where they lie in the source's memory by one
// copy of the kernel's, and says when it has; the source has nothing to do meanwhile. It is not the default: messages
// were measured to be faster (bench/README.md). Where it cannot be, messages are asked for.
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "runtime/malleable/exchange.hpp"
#include "runtime/mpi/pmpi.hpp"

namespace hocket::runtime {
namespace {

// What a reader looks at first: who has the same process number may be another process, seen from elsewhere.
std::uint64_t cookie() {
  static const std::uint64_t value = [] {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = static_cast<std::uint64_t>(getpid());
    return random;
  }();
  return value;
}

// An offer: the process, its cookie and where that lies, then where each array's `from` lies.
enum OfferWord : std::size_t { pid_word, cookie_word, cookie_at_word, first_array_word };

enum class Answer : std::int64_t { none, has_read, wants_messages };

// Some bytes of another process. False: the kernel does not allow it, or the process has gone.
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

class Messages final : public Exchange {
 public:
  int post(MPI_Comm comm, std::span<const Transfer> arrays) override {
    comm_ = comm;
    arrays_ = arrays;
    int code = await_offers();
    if (code == MPI_SUCCESS) code = await_answers();
    return code == MPI_SUCCESS ? send_offers() : code;
  }

  int test(bool& ended) override {
    bool all = true;
    int code = MPI_SUCCESS;
    for (Target& target : targets_)
      if (code == MPI_SUCCESS) code = test_target(target, all);
    for (Source& source : sources_)
      if (code == MPI_SUCCESS) code = test_source(source, all);
    bool here_ended = false;
    if (code == MPI_SUCCESS) code = Exchange::test(here_ended);
    ended = all && here_ended;
    return code;
  }

  int close() override { return MPI_SUCCESS; }

 private:
  // Who gets something from this rank, and who gives it something. Requests and buffers stay where they are.
  struct Target {
    int rank = 0;
    Answer answer = Answer::none;
    MPI_Request request{};
    bool over = false;  // nothing is left to start for it
  };
  struct Source {
    int rank = 0;
    std::vector<std::uint64_t> offer;
    Answer answer = Answer::none;
    MPI_Request request{};
    bool offered = false;
    bool over = false;
    std::size_t place = 0;    // of the array that is being read,
    std::size_t message = 0;  // its message,
    std::int64_t at = 0;      // and the bytes that were read of it
  };
  // Read at a time, so that who asks whether it is over is not kept.
  static constexpr std::int64_t piece = std::int64_t{1} << 20;

  // An array's place is the tag of its messages; offers and answers have their own.
  int offer_tag() const { return static_cast<int>(arrays_.size()); }
  int answer_tag() const { return static_cast<int>(arrays_.size()) + 1; }
  MPI_Request* request() { return &requests_.emplace_back(mpi::no_request()); }

  // The ranks that the plans name in `messages`, each once.
  std::vector<int> peers(std::vector<redistribute::Message> redistribute::Plan::*messages) const {
    std::vector<int> ranks;
    for (const Transfer& array : arrays_) {
      for (const redistribute::Message& m : array.plan.*messages) ranks.push_back(m.peer);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  int await_offers() {
    const std::size_t words = first_array_word + arrays_.size();
    for (const int rank : peers(&redistribute::Plan::receives)) {
      Source& source = sources_.emplace_back();
      source.rank = rank;
      source.offer.resize(words);
    }
    int code = MPI_SUCCESS;
    for (Source& source : sources_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Irecv)(source.offer.data(), static_cast<int>(words * sizeof(std::uint64_t)), mpi::byte_type(),
                                source.rank, offer_tag(), comm_, &source.request);
    }
    return code;
  }

  int await_answers() {
    for (const int rank : peers(&redistribute::Plan::sends)) targets_.emplace_back().rank = rank;
    int code = MPI_SUCCESS;
    for (Target& target : targets_) {
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
    for (const Transfer& array : arrays_) offer_.push_back(reinterpret_cast<std::uint64_t>(array.from));
    int code = MPI_SUCCESS;
    for (const Target& target : targets_) {
      if (code != MPI_SUCCESS) break;
      code = HOCKET_PMPI(Isend)(offer_.data(), static_cast<int>(offer_.size() * sizeof(std::uint64_t)),
                                mpi::byte_type(), target.rank, offer_tag(), comm_, request());
    }
    return code;
  }

  int test_target(Target& target, bool& all) {
    if (target.over) return MPI_SUCCESS;
    int here = 0;
    const int code = HOCKET_PMPI(Test)(&target.request, &here, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || !here) {
      all = false;
      return code;
    }
    target.over = true;
    return target.answer == Answer::wants_messages ? send(target.rank) : MPI_SUCCESS;
  }

  int test_source(Source& source, bool& all) {
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
      // What was read before is read again, as messages.
      return receive_and_answer(source);
    }
    if (source.place < arrays_.size()) {
      all = false;
      return MPI_SUCCESS;
    }
    return answer(source, Answer::has_read);
  }

  static bool is_readable(const Source& source) {
    const char* allowed = std::getenv("HOCKET_SINGLE_COPY");
    if (!allowed || *allowed != '1') return false;
    std::uint64_t seen = 0;
    return read_memory(static_cast<std::int64_t>(source.offer[pid_word]), source.offer[cookie_at_word],
                       reinterpret_cast<std::byte*>(&seen), sizeof seen) &&
           seen == source.offer[cookie_word];
  }

  // The next piece, if there is one. False: it cannot be read.
  bool read_some(Source& source) {
    for (; source.place < arrays_.size(); ++source.place, source.message = 0) {
      const Transfer& array = arrays_[source.place];
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

  int receive_and_answer(Source& source) {
    int code = MPI_SUCCESS;
    for (std::size_t place = 0; place < arrays_.size() && code == MPI_SUCCESS; ++place)
      code = receive(place, source.rank);
    return code == MPI_SUCCESS ? answer(source, Answer::wants_messages) : code;
  }

  int answer(Source& source, Answer answer) {
    source.over = true;
    source.answer = answer;
    return HOCKET_PMPI(Isend)(&source.answer, sizeof source.answer, mpi::byte_type(), source.rank, answer_tag(), comm_,
                              request());
  }

  int receive(std::size_t place, int from) {
    const Transfer& array = arrays_[place];
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
  std::span<const Transfer> arrays_;
  std::vector<std::uint64_t> offer_;
  std::uint64_t cookie_ = 0;
  std::vector<Target> targets_;
  std::vector<Source> sources_;
};

}  // namespace

std::unique_ptr<Exchange> p2p_exchange() { return std::make_unique<Messages>(); }

}  // namespace hocket::runtime
