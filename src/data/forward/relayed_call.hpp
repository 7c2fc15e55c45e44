// A forwarded call that is carried out on another node (docs/design/forwarding-elsewhere.md).
//
//   program ── descriptor ──► relay of its node ── name, identity, data, over TCP ──► hocket-server of another node
//
// The server opens the file by its name for each call, makes sure that it is the file of the descriptor, and closes it
// before it answers. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transport/frame.hpp"

namespace hocket::forward {

// Names a file so that it is found on another node that mounts the same file system.
struct NameElsewhere {
  std::string path;  // absolute, without symbolic links; empty: all files, of a sync
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;  // time of creation since 1970; 0: the file system does not say
  std::string handle;        // of name_to_handle_at, with its type; empty: the file system has none
  bool operator==(const NameElsewhere&) const = default;
};

// Returns the name of an open file, as the kernel has it now; nothing if it has none.
std::optional<NameElsewhere> name_elsewhere(int descriptor);
// True if it is certain that both are the same file, one as this node sees it, the other as another node does. A
// number of an inode is used again, so it is not enough: the handles must be equal, which have a generation, or, where
// a file system has none, the times of creation.
bool is_same_file(const NameElsewhere& one, const NameElsewhere& other);

struct RelayedCall {
  enum class Kind : std::uint8_t { read, write, sync };
  Kind kind = Kind::sync;
  bool syncs_data = false;  // as with O_DSYNC; `syncs_all`: O_SYNC
  bool syncs_all = false;
  std::int64_t offset = 0;  // explicit
  std::int64_t bytes = 0;
  NameElsewhere file;
  bool operator==(const RelayedCall&) const = default;
};

// Return the frame of a call, and the call of a frame. `read_call` fails for what is none.
transport::Header header_of(const RelayedCall& call);
std::string meta_of(const RelayedCall& call);
Result<RelayedCall> read_call(const transport::Header& header, std::string_view meta);

}  // namespace hocket::forward
