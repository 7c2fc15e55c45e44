// The messages of a drain to servers that keep data sets, and their answers.
#include <utility>

#include "coordinator/servers/servers.hpp"

namespace hocket::coordinator {

void Servers::tell_of_moves(const Moment& moment) {
  std::vector<event::ServerMap::MappedServer> staying;
  std::string drained;
  for (const ServerEntry& entry : entries_) {
    if (entry.said.exchange_bytes == 0 || !entry.member) continue;
    if (entry.state == ServerState::drained) {
      drained.append(drained.empty() ? "" : " ").append(entry.said.server);
    } else if (entry.state != ServerState::hung) {
      staying.push_back(
          {entry.said.server, entry.said.directory, entry.said.addresses, entry.state == ServerState::slow});
    }
  }
  const std::string text = drained.empty() ? std::string{} : event::text_of(staying);
  for (ServerEntry& entry : entries_) {
    if (entry.said.exchange_bytes == 0 || !entry.member) continue;
    if (entry.told.text == text && entry.told.drained == drained) continue;
    entry.told = {++moves_, text, drained};
    moment.commands.push_back({entry.member, entry.told});
  }
}

void Servers::left(const Moment& moment, const event::DataSetsLeft& left) {
  ServerEntry* entry = find(moment.event.origin.member);
  // An answer to an earlier message may have been sent before the server was drained.
  if (entry == nullptr || left.epoch != entry->told.epoch) return;
  entry->left = left;
  const bool moves = entry->state == ServerState::drained && left.kept > 0;
  if (std::exchange(entry->moves_data_sets, moves) != moves) publish(moment);
}

}  // namespace hocket::coordinator
