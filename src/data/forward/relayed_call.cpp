#include "forward/relayed_call.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>

#include "forward/protocol.h"
#include "transport/file_identity.hpp"

namespace hocket::forward {
namespace {

constexpr std::uint32_t syncs_data_bit = 1, syncs_all_bit = 2;
constexpr std::size_t most_handle_bytes = 128;  // MAX_HANDLE_SZ

// Returns the file system's handle of an open file, with its type; "" if it has none.
std::string handle_of(int descriptor) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + most_handle_bytes> memory{};
  auto* const handle = reinterpret_cast<file_handle*>(memory.data());
  handle->handle_bytes = most_handle_bytes;
  int mount = 0;
  if (name_to_handle_at(descriptor, "", handle, &mount, AT_EMPTY_PATH) != 0 || handle->handle_bytes > most_handle_bytes)
    return {};
  return std::to_string(handle->handle_type) + ":" +
         std::string(memory.data() + sizeof(file_handle), handle->handle_bytes);
}

}  // namespace

std::optional<NameElsewhere> name_elsewhere(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  if (length <= 0 || path[0] != '/') return std::nullopt;
  const transport::FileIdentity identity = transport::identity_of(descriptor);
  return NameElsewhere{std::string(path.data(), static_cast<std::size_t>(length)), identity.inode, identity.born_ns,
                       handle_of(descriptor)};
}

bool is_same_file(const NameElsewhere& one, const NameElsewhere& other) {
  if (one.inode == 0 || one.inode != other.inode) return false;
  if (one.born_ns != 0 && other.born_ns != 0 && one.born_ns != other.born_ns) return false;
  if (!one.handle.empty() && !other.handle.empty()) return one.handle == other.handle;
  return one.born_ns != 0 && other.born_ns != 0;
}

transport::Header header_of(const RelayedCall& call) {
  transport::Header header;
  header.type = transport::Type::call;
  if (call.kind == RelayedCall::Kind::read) header.flags = transport::flag::reads;
  if (call.kind == RelayedCall::Kind::write) header.flags = transport::flag::writes;
  header.offset = call.offset;
  header.bytes = call.bytes;
  header.operation = call.file.inode;
  header.shared = call.file.born_ns;
  header.number = (call.syncs_data ? syncs_data_bit : 0U) | (call.syncs_all ? syncs_all_bit : 0U);
  return header;
}

std::string meta_of(const RelayedCall& call) { return call.file.path + '\0' + call.file.handle; }

Result<RelayedCall> read_call(const transport::Header& header, std::string_view meta) {
  RelayedCall call;
  const bool reads = header.has(transport::flag::reads), writes = header.has(transport::flag::writes);
  const std::size_t end = meta.find('\0');
  if (end == std::string_view::npos || meta.size() - end > most_handle_bytes + 16)
    return Error{"a call without a file"};
  if (reads && writes) return Error{"a call that reads and writes"};
  if (header.bytes > forward_most_bytes || (header.number & ~(syncs_data_bit | syncs_all_bit)) != 0)
    return Error{"a call out of range"};
  if (reads) call.kind = RelayedCall::Kind::read;
  if (writes) call.kind = RelayedCall::Kind::write;
  call.syncs_data = (header.number & syncs_data_bit) != 0;
  call.syncs_all = (header.number & syncs_all_bit) != 0;
  call.offset = header.offset;
  call.bytes = header.bytes;
  call.file.path = meta.substr(0, end);
  call.file.inode = header.operation;
  call.file.born_ns = header.shared;
  call.file.handle = meta.substr(end + 1);
  return call;
}

}  // namespace hocket::forward
