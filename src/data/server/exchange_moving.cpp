// How a server moves its data sets to other servers, while it or others are drained.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "server/exchange.hpp"

namespace hocket::server {
namespace {

constexpr Duration again_after = std::chrono::seconds{1};               // a move that failed
constexpr Duration look_at_rest_every = std::chrono::milliseconds{50};  // at what is left
constexpr std::size_t most_shown = 4;                                   // data sets in a text for people

Fd copy_of(const Fd& descriptor) { return Fd{fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0)}; }

// Returns the servers that may become homes: slow ones only if there are no others.
event::ServerMap homes_of(event::ServerMap staying) {
  const auto is_slow = [](const auto& server) { return server.set_aside; };
  if (!std::ranges::all_of(staying.servers, is_slow)) std::erase_if(staying.servers, is_slow);
  return staying;
}

}  // namespace

std::optional<DataSetServers> servers_of(const event::MoveDataSets& move) {
  auto map = event::parse_server_map(move.epoch, move.text);
  if (!map || move.drained.empty()) return std::nullopt;
  DataSetServers servers{move.epoch, std::move(map).value(), {}};
  for (std::size_t at = 0; at < move.drained.size();) {
    const std::size_t end = std::min(move.drained.find(' ', at), move.drained.size());
    servers.drained.insert(move.drained.substr(at, end - at));
    at = end + 1;
  }
  return servers;
}

void DataSetExchange::take_servers(std::optional<DataSetServers> servers, const std::string& own_name,
                                   LeftReport report) {
  moves_.servers = std::move(servers);
  moves_.own_name = own_name;
  moves_.report = std::move(report);
  moves_.failed.clear();
  moves_.told.reset();
  moves_.looked = {};
  sets_.drain(moves_.servers && moves_.servers->drained.contains(own_name));
}

void DataSetExchange::attend(Time now) {
  now_ = now;
  if (moves_.thread) moves_.thread->reap();
  leases_.advance(now);
  if (!moves_.servers) return;
  if (!moves_.under_way) move_next(now);
  if (is_drained()) report_left(now);
}

DataSetExchange::FoundHome DataSetExchange::find(const std::string& name) const {
  if (sets_.is_home_of(name)) return {0, true};
  return {is_drained() ? ESHUTDOWN : 0, false};
}

int DataSetExchange::adopt(SessionId mover, std::string_view moved) {
  if (ends_) return ECANCELED;
  const auto name = parse_moved_name(moved);
  if (!name) return EINVAL;
  DataSets::Answered answered = sets_.adopt(mover, name.value());
  carry_out(std::move(answered.outcomes));
  return answered.error;
}

// ---- what moves ----------------------------------------------------------------------------------------------------

// True if versions are left that a drained server can move.
bool DataSetExchange::can_move_more() const {
  if (!moves_.servers || !is_drained() || moves_.servers->staying.servers.empty()) return false;
  const auto names = sets_.movable();
  return std::ranges::any_of(names, [](const auto& name) { return !name.versions.empty(); });
}

// A drained server moves everything. Another one writes anew what has parts at a drained server.
bool DataSetExchange::must_move(const DataSets::MovableName& name) const {
  if (is_drained()) return true;
  const auto is_at_drained = [this](const event::ServerMap::MappedServer& server) {
    return moves_.servers->drained.contains(server.name);
  };
  return std::ranges::any_of(name.versions, [&](DataSets::VersionId id) {
    const auto version = versions_.find(id);
    return version != versions_.end() && std::ranges::any_of(version->second.striped, is_at_drained);
  });
}

void DataSetExchange::move_next(Time now) {
  const DataSetServers& servers = *moves_.servers;
  if (servers.drained.empty() || servers.staying.servers.empty()) return;
  // Clients that wait for a first version wait for it elsewhere.
  for (const DataSets::MovableName& name : sets_.movable()) {
    const bool is_unknown = !sets_.is_home_of(name.name) && !sets_.is_open(name.name);
    if (is_drained() && is_unknown) carry_out(sets_.end_move(name.name, true));
  }
  for (const DataSets::MovableName& name : sets_.movable()) {
    const auto failed = moves_.failed.find(name.name);
    const bool is_early = failed != moves_.failed.end() && now < failed->second.again;
    if (name.is_known && !is_early && must_move(name)) return begin_move(name.name);
  }
}

void DataSetExchange::begin_move(const std::string& name) {
  DataSets::Moving moving = sets_.begin_move(name);
  const auto move = std::make_shared<DataSetMove>();
  move->moved = std::move(moving.moved);
  for (const DataSets::MovingVersion& one : moving.versions) {
    DataSetMove::Source& source = move->sources.emplace_back();
    if (one.id == 0) continue;
    const HeldVersion& version = versions_.at(one.id);
    source = {copy_of(version.file->readable), one.length, version.number, version.striped};
    if (!source.memory || version.stage == StripingStage::asking)
      return end_move(name, "its servers are not known yet", false);
  }
  const event::ServerMap& staying = moves_.servers->staying;
  const event::ServerMap homes = homes_of(staying);
  const std::string home = is_drained() ? event::home_of(homes, name)->name : moves_.own_name;
  move->to = event::servers_of_data_set(staying, name, home);
  move->secret_file = leases_.secret_file();
  if (!moves_.thread) {
    moves_.thread = std::make_unique<Workers>(1);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, moves_.thread->descriptor(), &event);
  }
  moves_.under_way = true;
  moves_.thread->submit([this, name, move](std::span<std::byte>) {
    const std::string why = server::carry_out(*move, moves_.gives_up);
    return [this, name, why, to = move->to.front().name] {
      moves_.under_way = false;
      end_move(name, why, to != moves_.own_name);
      if (why.empty() && to != moves_.own_name)
        calls_.log(fmt::format("moved the data set '{}' to the I/O server {}", name, to));
    };
  });
}

void DataSetExchange::end_move(const std::string& name, const std::string& why, bool has_new_home) {
  // Copies at this server itself have replaced the versions already.
  carry_out(sets_.end_move(name, why.empty() && has_new_home));
  if (why.empty()) {
    moves_.failed.erase(name);
    return;
  }
  DataSetMoves::FailedMove& failed = moves_.failed[name];
  if (failed.why != why) calls_.log(fmt::format("the data set '{}' cannot be moved now: {}; tries again", name, why));
  failed = {now_ + again_after, why};
}

// ---- what is left --------------------------------------------------------------------------------------------------

event::DataSetsLeft DataSetExchange::left() const {
  event::DataSetsLeft left;
  left.epoch = moves_.servers->epoch;
  left.bytes = sets_.bytes();
  std::vector<std::string> texts;
  const bool is_last = moves_.servers->staying.servers.empty();
  for (const DataSets::NameLoad& load : sets_.loads()) {
    left.kept += load.versions;
    const auto failed = moves_.failed.find(load.name);
    const std::string why = sets_.is_open(load.name)        ? "open in an application"
                            : is_last                       ? "no other I/O server keeps data sets"
                            : failed != moves_.failed.end() ? "not moved: " + failed->second.why
                                                            : "is moved";
    texts.push_back(fmt::format("'{}' ({} bytes, {})", load.name, load.bytes, why));
  }
  const auto parts = static_cast<std::int64_t>(parts_.count());
  left.kept += parts;
  if (parts > 0) texts.push_back(fmt::format("{} part{} of data sets of other servers", parts, parts == 1 ? "" : "s"));
  // Names without versions move, too, so that their numbers go on.
  if (left.kept == 0 && !is_last) {
    for (const DataSets::MovableName& name : sets_.movable()) left.kept += name.is_known ? 1 : 0;
    left.kept += moves_.under_way ? 1 : 0;
    if (left.kept > 0) texts.emplace_back("the numbers of data sets without versions");
  }
  for (std::size_t i = 0; i < std::min(texts.size(), most_shown); ++i) left.text += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > most_shown) left.text += fmt::format(" and {} more", texts.size() - most_shown);
  return left;
}

void DataSetExchange::report_left(Time now) {
  if (now - moves_.looked < look_at_rest_every && moves_.told) return;
  moves_.looked = now;
  event::DataSetsLeft now_left = left();
  const auto is_same = [&](const event::DataSetsLeft& told) {
    return told.kept == now_left.kept && told.bytes == now_left.bytes && told.text == now_left.text;
  };
  if (moves_.told && is_same(*moves_.told)) return;
  moves_.told = now_left;
  moves_.report(now_left);
}

}  // namespace hocket::server
