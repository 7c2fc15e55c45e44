// Writes that a client collects in its segment (close-to-open consistency), as the server sees them.
//
// The client puts bytes in without a message, at any time, and raises `filled` (protocol.h). The server writes them to
// the file with a descriptor that it keeps for this only. Before it gives the descriptor back by itself it marks
// `filled` as closed, which succeeds only if the client has put nothing in meanwhile: nothing is left behind.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/descriptor.hpp"
#include "forward/client_segment.hpp"
#include "transport/file_key.hpp"

namespace hocket::forward {

// Thread-safe.
class CollectedWrites {
 public:
  // Takes over the descriptor. The client has set `filled`, `stored`, and `error` to 0 before it asked for this.
  CollectedWrites(std::shared_ptr<ClientSegment> segment, Fd file, FileKey key);

  // Which file it is (transport/file_key.hpp).
  FileKey key() const { return key_; }
  // Returns the place and number of bytes that are not written yet.
  struct Pending {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  Pending pending() const;

  // Writes what is there. Returns how many bytes it has written. An error is told to the client, and what could not be
  // written is dropped, as the kernel drops what it cannot write back.
  std::int64_t store();
  // The same; then the client may begin at the start of its segment. Only for a client that waits meanwhile.
  std::int64_t store_all();
  // Writes what is there, and gives the descriptor back. Nothing is written afterwards.
  std::int64_t close();
  // Writes what is there. If the client has put nothing in since the last call, gives the descriptor back.
  std::int64_t look();
  bool is_closed() const;

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  std::uint64_t filled() const;
  std::int64_t store_locked();
  bool try_to_close();
  void give_back();

  const std::shared_ptr<ClientSegment> segment_;
  forward_collected& head_;
  const FileKey key_;
  mutable std::mutex mutex_;  // guards what follows
  Fd file_;
  std::uint64_t stored_ = 0;    // the client could change that of the segment
  std::uint64_t seen_ = never;  // bytes at the last look
};

}  // namespace hocket::forward
