#include "server/parts.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "event/server_map.hpp"
#include "layout/stripes.hpp"
#include "server/memory_file.hpp"

namespace hocket::server {

DataSetParts::Opened DataSetParts::keep(const transport::KeptPart& part, SessionId home) {
  const bool is_good = part.index >= 1 && part.index < part.servers && part.servers <= event::most_servers_of_file;
  if (!is_good || parts_.contains(part.number)) return {EINVAL};
  if (sets_.limit() == 0) return {ENOSPC};
  auto [readable, writable] = make_memory();
  if (!readable) return {ENOSPC};
  const FilePtr file = files_.add("a part of a data set", std::move(readable), std::move(writable));
  file->stripe_index = part.index;
  file->stripe_servers = part.servers;
  ++file->handles;
  parts_.emplace(part.number, HeldPart{.file = file, .home = home});
  return {0, file};
}

DataSetParts::Opened DataSetParts::open(std::uint64_t number, bool writes, std::int64_t length) {
  const auto found = parts_.find(number);
  if (found == parts_.end() || !found->second.leased) return {ESTALE};
  HeldPart& part = found->second;
  if (!writes) {
    ++part.readers;
    extend_memory(*part.file, length);
  }
  ++part.file->handles;
  return {0, part.file};
}

DataSetParts::Grown DataSetParts::grow(std::uint64_t number, std::int64_t end) {
  const auto found = parts_.find(number);
  if (found == parts_.end() || found->second.file->dropped) return {ECANCELED};
  HeldPart& part = found->second;
  const std::int64_t bytes = layout::bytes_of_server(end, part.file->stripe_index, part.file->stripe_servers);
  const std::int64_t more = std::max<std::int64_t>(bytes - part.bytes, 0);
  if (sets_.take(more)) {
    part.bytes += more;
    return {};
  }
  // The client learns it, and has the home drop the version.
  free_memory(*part.file);
  return {ENOSPC, std::exchange(part.bytes, 0)};
}

std::int64_t DataSetParts::read(std::uint64_t number) {
  const auto found = parts_.find(number);
  if (found == parts_.end()) return 0;
  --found->second.readers;
  return forget_if_unused(found);
}

std::int64_t DataSetParts::release(std::uint64_t number) {
  const auto found = parts_.find(number);
  if (found == parts_.end()) return 0;
  found->second.leased = false;
  return forget_if_unused(found);
}

std::int64_t DataSetParts::gone(SessionId home) {
  std::int64_t bytes = 0;
  for (auto part = parts_.begin(); part != parts_.end();) {
    const auto next = std::next(part);
    if (part->second.home == home) bytes += release(part->first);
    part = next;
  }
  return bytes;
}

std::int64_t DataSetParts::forget_if_unused(PartMap::iterator part) {
  if (part->second.leased || part->second.readers > 0) return 0;
  const std::int64_t bytes = part->second.bytes;
  free_memory(*part->second.file);
  parts_.erase(part);
  return bytes;
}

}  // namespace hocket::server
