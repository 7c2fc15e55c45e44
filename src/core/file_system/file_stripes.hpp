// The stripes of a file: on which data servers of its file system its bytes lie. Pure.
//
// Offsets and sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace hocket::file_system {

// An extent of a file with one striping: the data servers take turns, each with `stripe_bytes`, from offset 0 of the
// file on.
struct StripedExtent {
  std::int64_t begin = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  std::int64_t stripe_bytes = 0;
  std::vector<std::uint32_t> servers{};  // in the order of the stripes; empty: none yet, or `on_metadata`
  bool on_metadata = false;              // the bytes lie on the metadata targets
  bool operator==(const StripedExtent&) const = default;
};

// The kind says what the numbers of data servers mean.
enum class ServerKind {
  ost,     // index of an OST of Lustre
  target,  // number of a storage target of BeeGFS
  mirror,  // number of a buddy group of BeeGFS
};

struct FileStripes {
  ServerKind kind = ServerKind::ost;
  std::vector<StripedExtent> extents{};  // of a mirrored file of Lustre, those of the first mirror come first
  bool operator==(const FileStripes&) const = default;
};

// Returns the extent that contains the offset; nullptr if none is known.
const StripedExtent* extent_at(const FileStripes& stripes, std::int64_t offset);
// Returns the number of the data server that has the byte; nothing if it is not known.
std::optional<std::uint32_t> server_at(const FileStripes& stripes, std::int64_t offset);

// Returns what the extended attribute "lustre.lov" says: a layout of version 1 or 3, or a composite of these. Nothing
// if it is no such layout, or the data are not there (released, or the default of a directory).
std::optional<FileStripes> lustre_stripes(std::span<const std::byte> attribute);

}  // namespace hocket::file_system
