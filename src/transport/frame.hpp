// What client and server say to each other: frames of a header of fixed size, then its meta bytes, then its payload.
//
//   client                                  server
//                                         ← challenge: meta nonce; flag proof_wanted
//   prove: meta nonce and tag, or nothing →
//                                         ← welcome: meta the server's tag, or nothing
//   then share, open, join, view, write, read, end, sync, close, state →
//                                         ← answer, to each but share, view and end; in any order
//
// Numbers are little-endian. Each end counts its frames of a connection, from 1: a frame that was recorded elsewhere,
// or is sent once more, has a wrong number. What a header says is bounded before memory is taken for it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "layout/view.hpp"

namespace hocket::transport {

inline constexpr std::size_t header_bytes = 80;
inline constexpr std::uint32_t most_payload = 1U << 20U;
inline constexpr std::uint32_t most_meta = 512U << 10U;
// Runs in the file that one request may have: what a server keeps for each is bounded with them.
inline constexpr std::int64_t most_runs = 32 << 10;
inline constexpr std::uint32_t most_views = 64;  // of a file
inline constexpr std::size_t most_view_bytes = 256U << 10U;

enum class Type : std::uint8_t {
  prove = 1,
  share,  // meta: nothing; bytes: of the segment whose descriptor comes with the frame
  open,   // meta: path
  view,   // number; meta: serialised view
  write,
  read,
  end,  // number: participants
  sync,
  close,
  state,
  join,  // meta: name, newline, application; operation: group; number: participants; offset: patience in ms; bytes:
         // readers, from one that writes
  challenge = 64,
  welcome,
  answer,  // request, error, bytes; to open: handle, and bytes: 1 where it writes behind; to state: meta text; to
           // join: handle, number: version
};

namespace flag {
inline constexpr std::uint16_t reads = 1;  // open
inline constexpr std::uint16_t writes = 2;
inline constexpr std::uint16_t write_behind = 4;
inline constexpr std::uint16_t list = 8;     // write, read: meta has the runs
inline constexpr std::uint16_t viewed = 16;  // …: `offset` is in the data of view `number`
inline constexpr std::uint16_t shared = 32;  // …: the data are in the shared segment, at `shared`
inline constexpr std::uint16_t proof_wanted = 64;
inline constexpr std::uint16_t all = 127;
}  // namespace flag

struct Header {
  Type type = Type::answer;
  std::uint16_t flags = 0;
  std::uint64_t sequence = 0;  // of the connection; set by Stream
  std::uint64_t request = 0;
  std::uint64_t handle = 0;
  std::uint64_t operation = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;   // of data, wherever they are
  std::int64_t shared = 0;  // where in the segment
  std::uint32_t payload = 0;
  std::uint32_t meta = 0;
  std::int32_t error = 0;
  std::uint32_t number = 0;

  bool has(std::uint16_t one) const { return (flags & one) != 0; }
  bool operator==(const Header&) const = default;
};

using HeaderBytes = std::array<char, header_bytes>;
HeaderBytes encode(const Header& header);
// Fails where the bytes are no header of this version, or say more than the bounds allow.
// Precondition: bytes.size() == header_bytes.
Result<Header> decode(std::string_view bytes);

// ---- where data are in the file ------------------------------------------------------------------------------------

// Bytes at … at + length - 1.
struct FileRun {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t end() const { return at + length; }
  bool operator==(const FileRun&) const = default;
};

// The meta bytes of a list.
std::string encode(std::span<const FileRun> runs);
// The runs of a write or read, in the order of its data: rising, apart from each other, of `header.bytes` in all.
// `view`: that of `header.number`, nullptr where there is none. Fails for what is not so; the text is for the log.
Result<std::vector<FileRun>> runs_of(const Header& header, std::string_view meta, const layout::View* view);

}  // namespace hocket::transport
