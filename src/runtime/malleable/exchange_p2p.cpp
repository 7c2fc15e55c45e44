// Messages from each source to each target, all of them under way at once.
//
// A source sends when it has the target's word that it waits for them: MPICH over TCP receives a message of any size
// that nobody waits for into memory of its own, as large as the message.
#include <algorithm>

#include "runtime/malleable/exchange.hpp"
#include "runtime/mpi/pmpi.hpp"

namespace hocket::runtime {
namespace {

class Messages final : public Exchange {
 public:
  int post(MPI_Comm comm, std::span<const Transfer> arrays) override {
    comm_ = comm;
    arrays_ = arrays;
    int code = await_words();
    for (std::size_t i = 0; i < arrays.size() && code == MPI_SUCCESS; ++i) code = receive(i);
    return code == MPI_SUCCESS ? give_words() : code;
  }

  int test(bool& ended) override {
    int code = MPI_SUCCESS;
    for (std::size_t i = 0; i < words_.size() && code == MPI_SUCCESS; ++i) {
      if (words_[i] == mpi::no_request()) continue;
      int here = 0;
      code = HOCKET_PMPI(Test)(&words_[i], &here, MPI_STATUS_IGNORE);
      if (here && code == MPI_SUCCESS) code = send(targets_[i]);
    }
    const bool all_sent =
        std::all_of(words_.begin(), words_.end(), [](MPI_Request word) { return word == mpi::no_request(); });
    bool here_ended = false;
    if (code == MPI_SUCCESS) code = Exchange::test(here_ended);
    ended = all_sent && here_ended;
    return code;
  }

  int close() override { return MPI_SUCCESS; }

 private:
  // An array's place is the tag of its messages; the words have one of their own.
  int tag_of_words() const { return static_cast<int>(arrays_.size()); }
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

  int await_words() {
    targets_ = peers(&redistribute::Plan::sends);
    words_.assign(targets_.size(), mpi::no_request());
    int code = MPI_SUCCESS;
    for (std::size_t i = 0; i < targets_.size() && code == MPI_SUCCESS; ++i)
      code = HOCKET_PMPI(Irecv)(nullptr, 0, mpi::byte_type(), targets_[i], tag_of_words(), comm_, &words_[i]);
    return code;
  }

  int give_words() {
    int code = MPI_SUCCESS;
    for (const int source : peers(&redistribute::Plan::receives)) {
      if (code == MPI_SUCCESS)
        code = HOCKET_PMPI(Isend)(nullptr, 0, mpi::byte_type(), source, tag_of_words(), comm_, request());
    }
    return code;
  }

  int receive(std::size_t place) {
    const Transfer& array = arrays_[place];
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (code != MPI_SUCCESS) break;
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
  std::vector<int> targets_;
  std::vector<MPI_Request> words_;  // one of each target
};

}  // namespace

std::unique_ptr<Exchange> p2p_exchange() { return std::make_unique<Messages>(); }

}  // namespace hocket::runtime
