// The protocol between client and server. A frame consists of a header of fixed size, its meta bytes, and its
// payload.
//
//   client                                  server
//                                          ← challenge: meta nonce; flag proof_wanted
//   prove: meta nonce and tag, or nothing →
//                                          ← welcome: meta the server's tag, or nothing
//   then share, open, join, find, locate, part, keep, adopt, view, write, read, end, sync, close, store, state, or
//        relay, and after it chunk and call →
//                                          ← answer, to each but share, view and end; in any order
//                                          ← stored, alive, at any time
//
// Numbers are little-endian. Each end counts its frames of a connection from 1, so a frame that is replayed or comes
// from another connection has a wrong number. Header values are checked before memory is allocated for them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "layout/view.hpp"

namespace hocket::transport {

// Sizes in bytes: the header, and the bounds of a payload and of meta bytes.
inline constexpr std::size_t header_bytes = 80;
inline constexpr std::uint32_t most_payload = 1U << 20U;
inline constexpr std::uint32_t most_meta = 512U << 10U;
// Bound on the runs in the file that one request may have. It bounds the server's memory for each request. The server
// checks it for views; the length of a list is bounded by `most_meta`.
inline constexpr std::int64_t most_runs = 32 << 10;
inline constexpr std::uint32_t most_views = 64;              // views of an open file
inline constexpr std::size_t most_view_bytes = 256U << 10U;  // length of a serialised view

// Kind of a frame. The comments name the header fields that it uses.
enum class Type : std::uint8_t {
  prove = 1,
  share,  // bytes: size of the segment, whose descriptor comes with the frame
  // meta: path and, behind a NUL, for whom the server asks for turns (event/applicant.hpp), if it is to ask; flags:
  // access; operation, handle, offset: inode, device and time of creation of the client's own descriptor
  // (FileIdentity); bytes: placement (event/server_map.hpp)
  open,
  view,  // handle; number; meta: serialised view
  write,
  read,
  end,  // handle; operation; number: participants
  sync,
  close,  // handle; offset: of a data set's version at its home, the end of what the client wrote at all servers
  state,
  // meta: name, newline, application; flags: access; operation: group; number: participants; offset: time limit in
  // ms; bytes: declared readers, if it writes.
  join,
  store,  // handle; bytes: placement of the opening from now on
  // handle of a data set's version at its home; meta: the servers over which the client would stripe it, the home
  // first, as the text of a server map
  locate,
  // operation: number of a part; flags: access; bytes: length of the version, if it is read
  part,
  // operation: number of a part; number: its index among the servers; bytes: how many servers. From the home of a
  // version to the others: the part is kept until the handle is closed or the connection ends.
  keep,
  find,   // meta: name of a data set
  adopt,  // meta: a data set that moves here, whose versions this client has written (server/moved_name.hpp)
  // The three of a relay of `hocket forward` (forward/relayed_call.hpp). relay: the connection carries calls from now
  // on; meta: the run; operation: the connection's generation; handle: the user. chunk: shared: place of the payload in
  // the data of the next call, or answer. call: flags: access; offset, bytes; operation: inode; shared: time of
  // creation; number: options; meta: the file.
  relay,
  chunk,
  call,
  challenge = 64,
  welcome,
  // request, error, bytes. To open: handle; bytes 1 if the server writes behind. To write and read: number, of early
  // and elsewhere. To state: meta text. To join: handle; number: version; bytes: of that version. To locate: handle:
  // number of the parts; meta: the servers, the home first, as the text of a map; none: the home has all. To part and
  // keep: handle. To find: bytes 1 if the server is the home of the data set. To call: number: 1 if it was not made.
  answer,
  // handle; error. All writes of the handle that were answered have been carried out; `error` is one of them that the
  // client has not been told of, 0 if none. number 1: the server ends, and holds nothing of any client of the file.
  stored,
  alive,  // to a client that waits: the server runs, though its storage may be slow
};

// Bits of Header::number in answers of servers that write behind.
namespace answered {
inline constexpr std::uint32_t early = 1;      // the data of a write are not in the file yet
inline constexpr std::uint32_t elsewhere = 2;  // the server map has another placement than the opening
}  // namespace answered

// Bits of Header::flags.
namespace flag {
inline constexpr std::uint16_t reads = 1;  // reads, writes, write_behind: of open; the first two of join and part
inline constexpr std::uint16_t writes = 2;
inline constexpr std::uint16_t write_behind = 4;
inline constexpr std::uint16_t list = 8;           // write, read: meta has the runs
inline constexpr std::uint16_t viewed = 16;        // write, read: `offset` is in the data of view `number`
inline constexpr std::uint16_t shared = 32;        // write, read: data are in the shared segment, at `shared`
inline constexpr std::uint16_t proof_wanted = 64;  // challenge: the client must prove the secret
inline constexpr std::uint16_t moves = 128;        // join: the version moves here from another home
inline constexpr std::uint16_t all = 255;          // every known bit
}  // namespace flag

// Fixed part of a frame. The meaning of most fields depends on the type.
struct Header {
  Type type = Type::answer;
  std::uint16_t flags = 0;
  std::uint64_t sequence = 0;  // number of the frame in its direction; set by Stream
  std::uint64_t request = 0;   // the client's number; the answer repeats it
  std::uint64_t handle = 0;
  std::uint64_t operation = 0;  // collective operation; 0: independent
  std::int64_t offset = 0;
  std::int64_t bytes = 0;     // length of the data, wherever they are
  std::int64_t shared = 0;    // offset in the shared segment
  std::uint32_t payload = 0;  // length of the payload; set by Stream
  std::uint32_t meta = 0;     // length of the meta bytes; set by Stream
  std::int32_t error = 0;     // number of errno; 0: success
  std::uint32_t number = 0;

  bool has(std::uint16_t one) const { return (flags & one) != 0; }
  bool operator==(const Header&) const = default;
};

using HeaderBytes = std::array<char, header_bytes>;
HeaderBytes encode(const Header& header);
// Decodes a header. Fails if the bytes are no header of this version, or if a value exceeds its bound. Precondition:
// bytes.size() == header_bytes.
Result<Header> decode(std::string_view bytes);

// Returns the payload of a frame that carries these bytes of a call's memory. Precondition: bytes <= most_payload.
inline std::span<std::byte> chunk_of(char* memory, std::int64_t at, std::int64_t bytes) {
  return std::as_writable_bytes(std::span{memory + at, static_cast<std::size_t>(bytes)});
}

// ---- where data are in the file ------------------------------------------------------------------------------------

// A contiguous extent of a file: bytes at … at + length - 1.
struct FileRun {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t end() const { return at + length; }
  bool operator==(const FileRun&) const = default;
};

// Length of a run in the meta bytes of a frame with flag::list: its offset, and its length in 4 bytes.
inline constexpr std::size_t list_bytes_per_run = 12;
// Encodes runs as the meta bytes of a frame with flag::list.
std::string encode(std::span<const FileRun> runs);
// Returns the runs of a write or read in the order of its data. They rise, are disjoint, and have `header.bytes`
// bytes in all. `view` is the one with number `header.number`, or nullptr. Fails for any other frame; the text is for
// the log.
Result<std::vector<FileRun>> runs_of(const Header& header, std::string_view meta, const layout::FileView* view);

}  // namespace hocket::transport
