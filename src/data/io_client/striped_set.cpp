#include "io_client/striped_set.hpp"

#include <cerrno>
#include <utility>

#include "layout/stripes.hpp"

namespace hocket::io_client {
namespace {

// Waits by a strategy that is used again afterwards. Waiting moves nothing out of it.
void await_by(WaitStrategy& how, std::span<ServedFile> files) { await_answers(files, std::move(how)); }

}  // namespace

bool needs_parts(layout::Extent file) { return file.end > layout::stripe_bytes; }

int open_parts(std::vector<ServedFile>& files, const std::vector<event::ServerMap::MappedServer>& wanted,
               std::string_view secret, bool writes, WaitStrategy&& how) {
  files.front().locate(event::text_of(wanted));
  await_by(how, files);
  if (any_lost(files)) return ECONNRESET;
  if (const int error = take_error(files); error != 0) return error;
  const auto map = event::parse_server_map(0, files.front().servers());
  if (!map) return EPROTO;
  const std::uint64_t number = files.front().parts();
  const std::int64_t length = files.front().bytes();
  for (std::size_t i = 1; i < map.value().servers.size(); ++i) {
    files.emplace_back(map.value().servers[i], secret);
    files.back().open_part(number, writes, length);
  }
  await_by(how, files);
  for (ServedFile& file : files)
    if (file.failed()) file.lose("it keeps no part of this version any more");
  return any_lost(files) ? ECONNRESET : 0;
}

int close_version(std::span<ServedFile> files, std::int64_t end, WaitStrategy&& how) {
  ServedFile& home = files.front();
  const std::span<ServedFile> parts = files.subspan(1);
  for (ServedFile& part : parts) part.close();
  await_by(how, parts);
  const int error = take_error(parts);
  if (any_lost(files) || error != 0) {
    home.lose("given up, because a part of the version is not complete");
    return error != 0 && !any_lost(parts) ? error : ECONNRESET;
  }
  home.close(end);
  await_by(how, files.first(1));
  return home.lost() ? ECONNRESET : home.take_error();
}

}  // namespace hocket::io_client
