// Collective transfer: one nonblocking all-to-all call for each array.
#include "malleable/exchange.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

// One side of an all-to-all call: counts and places of the data sent to, or received from, each rank. MPI reads it
// until the call has ended, so it must stay in place.
//
// Counts and displacements of MPI_Ialltoallv are int. MPICH has its large-count form. Open MPI has not; there the code
// uses MPI_Ialltoallw with one datatype per message that holds its address. On MPICH that would take a hundred times as
// long.
#ifndef OPEN_MPI
struct AlltoallSide {
  explicit AlltoallSide(int ranks) : counts(static_cast<std::size_t>(ranks)), places(counts.size()) {}

  int add(int rank, const std::byte* start, const std::byte* address, std::int64_t bytes) {
    counts[static_cast<std::size_t>(rank)] = bytes;
    places[static_cast<std::size_t>(rank)] = address - start;
    return MPI_SUCCESS;
  }
  int free() { return MPI_SUCCESS; }

  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> places;
};

int all_to_all(const ExchangedArray& array, const AlltoallSide& sent, const AlltoallSide& received, MPI_Comm comm,
               MPI_Request* request) {
  return HOCKET_PMPI(Ialltoallv_c)(array.sent, sent.counts.data(), sent.places.data(), mpi::byte_type(), array.received,
                                   received.counts.data(), received.places.data(), mpi::byte_type(), comm, request);
}
#else
struct AlltoallSide {
  explicit AlltoallSide(int ranks)
      : counts(static_cast<std::size_t>(ranks)), places(counts.size()), types(counts.size(), mpi::byte_type()) {}

  // An indexed datatype of chunks holds more than 2^31 - 1 bytes.
  int add(int rank, const std::byte* /*start*/, const std::byte* address, std::int64_t bytes) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> addresses;
    in_pieces(bytes, [&](std::int64_t at, int length) {
      lengths.push_back(length);
      addresses.push_back(reinterpret_cast<MPI_Aint>(address) + at);
      return MPI_SUCCESS;
    });
    MPI_Datatype& type = types[static_cast<std::size_t>(rank)];
    const int code = HOCKET_PMPI(Type_create_hindexed)(static_cast<int>(lengths.size()), lengths.data(),
                                                       addresses.data(), mpi::byte_type(), &type);
    if (code != MPI_SUCCESS) return code;
    counts[static_cast<std::size_t>(rank)] = 1;
    return HOCKET_PMPI(Type_commit)(&type);
  }
  int free() {
    int code = MPI_SUCCESS;
    for (std::size_t rank = 0; rank < types.size(); ++rank) {
      if (counts[rank] && code == MPI_SUCCESS) code = HOCKET_PMPI(Type_free)(&types[rank]);
    }
    return code;
  }

  std::vector<int> counts;
  std::vector<int> places;
  std::vector<MPI_Datatype> types;
};

int all_to_all(const ExchangedArray& /*array*/, const AlltoallSide& sent, const AlltoallSide& received, MPI_Comm comm,
               MPI_Request* request) {
  return HOCKET_PMPI(Ialltoallw)(MPI_BOTTOM, sent.counts.data(), sent.places.data(), sent.types.data(), MPI_BOTTOM,
                                 received.counts.data(), received.places.data(), received.types.data(), comm, request);
}
#endif

class Collective final : public ArrayExchange {
 public:
  int post(MPI_Comm comm, std::span<const ExchangedArray> arrays) override {
    const int ranks = mpi::size_of(comm);
    sides_.reserve(2 * arrays.size());  // pointers into an AlltoallSide must not move
    for (const ExchangedArray& array : arrays) {
      AlltoallSide& sent = sides_.emplace_back(ranks);
      AlltoallSide& received = sides_.emplace_back(ranks);
      int code = MPI_SUCCESS;
      for (const SentMessage& m : array.sends) {
        if (code == MPI_SUCCESS) code = sent.add(m.peer, array.sent, m.data, m.bytes);
      }
      for (const ReceivedMessage& m : array.receives) {
        if (code == MPI_SUCCESS) code = received.add(m.peer, array.received, m.data, m.bytes);
      }
      MPI_Request& request = requests_.emplace_back(mpi::no_request());
      if (code == MPI_SUCCESS) code = all_to_all(array, sent, received, comm, &request);
      if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
  }

  int close() override {
    int code = MPI_SUCCESS;
    for (AlltoallSide& side : sides_) {
      if (code == MPI_SUCCESS) code = side.free();
    }
    return code;
  }

 private:
  std::vector<AlltoallSide> sides_;
};

}  // namespace

std::unique_ptr<ArrayExchange> collective_exchange() { return std::make_unique<Collective>(); }

}  // namespace hocket::runtime
