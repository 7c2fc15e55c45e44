#include "server/exchange.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>

#include "layout/stripes.hpp"
#include "server/memory_file.hpp"
#include "transport/proof.hpp"

namespace hocket::server {
namespace {

DataSets::GroupMember member_of(Asker asker) { return {asker.session, asker.request}; }

// Decodes a join frame. Time limits above a day are cut, so that the sum with a time cannot overflow.
DataSets::JoinRequest read_joining(const transport::Header& header, std::string_view meta) {
  DataSets::JoinRequest what;
  const std::size_t end = std::min(meta.find('\n'), meta.size());
  what.moves = header.has(transport::flag::moves);
  what.name = what.moves ? DataSets::name_of_copy(meta.substr(0, end)) : std::string{meta.substr(0, end)};
  what.application = meta.substr(std::min(end + 1, meta.size()));
  what.group = header.operation;
  what.writes = header.has(transport::flag::writes);
  what.participants = header.number;
  what.readers = what.writes ? header.bytes : 0;
  constexpr std::int64_t most_ms = std::chrono::milliseconds{std::chrono::hours{24}}.count();
  what.patience = std::chrono::milliseconds{std::min(header.offset, most_ms)};
  return what;
}

}  // namespace

DataSetExchange::DataSetExchange(const DataSets::DataSetSettings& settings, Engine& engine, std::string secret_file,
                                 ExchangeCalls calls)
    : sets_(settings),
      files_(engine.files()),
      parts_(sets_, files_),
      calls_(std::move(calls)),
      leases_(engine.workers(), std::move(secret_file),
              {.kept = [this](std::uint64_t number, const auto& servers) { kept(number, servers); },
               .lost = [this](const auto& server, const auto& numbers) { lost(server, numbers); }}),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, leases_.descriptor(), &event);
}

DataSetExchange::~DataSetExchange() { moves_.gives_up = true; }

void DataSetExchange::join(Asker asker, const transport::Header& header, std::string_view meta, Time now) {
  // A client either reads or writes a version. `DataSets` checks names and numbers.
  if (header.has(transport::flag::reads) == header.has(transport::flag::writes)) {
    return calls_.joined({asker, EINVAL});
  }
  if (ends_) return calls_.joined({asker, ECANCELED});
  carry_out(sets_.join(member_of(asker), read_joining(header, meta), now));
}

// A client that does not ask where the stripes are writes all to the home.
int DataSetExchange::grow(Asker joined, std::int64_t end) {
  const DataSets::VersionId id = sets_.version_of(member_of(joined));
  if (id != 0 && end > layout::stripe_bytes) {
    HeldVersion& version = version_of(id);
    if (version.stage == StripingStage::asking) return EINVAL;
    version.stage = StripingStage::decided;
  }
  DataSets::Answered answered = sets_.grow(member_of(joined), end);
  carry_out(std::move(answered.outcomes));
  return answered.error;
}

int DataSetExchange::grow_part(std::uint64_t number, std::int64_t end) {
  const DataSetParts::Grown grown = parts_.grow(number, end);
  give(grown.freed);
  return grown.error;
}

void DataSetExchange::closes(Asker joined, Asker close, const FilePtr& file, std::int64_t end) {
  closing_[{close.session, close.request}] = {member_of(joined), file, end};
}

void DataSetExchange::closes_part(Asker close, const FilePtr& file) {
  closing_[{close.session, close.request}] = {std::nullopt, file};
}

void DataSetExchange::finish(Answer& answer) {
  if (closing_.empty()) return;
  const auto found = closing_.find({answer.to.session, answer.to.request});
  if (found == closing_.end()) return;
  const Closing closing = std::move(found->second);
  closing_.erase(found);
  const bool is_intact = answer.error == 0 && !closing.file->lost_write;
  if (!closing.member) {
    if (!is_intact || closing.file->dropped) answer.error = ECANCELED;
    return;
  }
  DataSets::Answered answered = sets_.close(*closing.member, is_intact, closing.end);
  if (answer.error == 0) answer.error = answered.error;
  carry_out(std::move(answered.outcomes));
}

void DataSetExchange::gone(SessionId session) {
  closing_.erase(closing_.lower_bound({session, 0}), closing_.lower_bound({session + 1, 0}));
  carry_out(sets_.gone(session));
  give(parts_.gone(session));
}

// ---- what the data sets say ----------------------------------------------------------------------------------------

// Answers the members and frees the versions. The list grows while it is processed: if no memory file can be made for
// a version, closing it has outcomes of its own.
void DataSetExchange::carry_out(DataSets::DataSetOutcomes outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const DataSets::DataSetOutcome one = outcomes[i];
    const Asker asker{one.member.client, one.member.join};
    switch (one.kind) {
      case DataSets::DataSetOutcome::OutcomeKind::refused: calls_.joined({asker, one.error}); break;
      case DataSets::DataSetOutcome::OutcomeKind::forgotten: drop(one.version); break;
      case DataSets::DataSetOutcome::OutcomeKind::served: {
        const HeldVersion& version = version_of(one.version);
        const FilePtr file = version.file;
        if (file) {
          if (!one.writes && version.number != 0) extend_memory(*file, one.bytes);
          ++file->handles;
          calls_.joined({asker, 0, file, one.writes, one.number, one.writes ? 0 : one.bytes});
          break;
        }
        calls_.joined({asker, ENOSPC});
        const auto [error, more] = sets_.close(one.member, false);
        outcomes.insert(outcomes.end(), more.begin(), more.end());
      }
    }
  }
}

// Returns the version, whose memory file its first member creates.
DataSetExchange::HeldVersion& DataSetExchange::version_of(DataSets::VersionId id) {
  const auto [place, is_new] = versions_.try_emplace(id);
  if (is_new) {
    auto [readable, writable] = make_memory();
    if (readable) place->second.file = files_.add("a data set", std::move(readable), std::move(writable));
  }
  return place->second;
}

void DataSetExchange::drop(DataSets::VersionId id) {
  const auto dropped = versions_.extract(id);
  if (dropped.empty()) return;
  HeldVersion& version = dropped.mapped();
  if (version.file) free_memory(*version.file);
  if (version.number != 0) {
    striped_.erase(version.number);
    leases_.release(version.number);
  }
  for (const Asker asker : version.waiting) calls_.located({asker, ECANCELED});
}

// ---- stripes -------------------------------------------------------------------------------------------------------

void DataSetExchange::locate(Asker joined, bool writes, Asker locate, std::string_view servers, Time now) {
  const DataSets::VersionId id = sets_.version_of(member_of(joined));
  auto map = event::parse_server_map(0, servers);
  if (id == 0 || !map) return calls_.located({locate, id == 0 ? ECANCELED : EINVAL});
  HeldVersion& version = version_of(id);
  version.waiting.push_back(locate);
  if (version.stage == StripingStage::decided) return decide(version);
  if (version.stage == StripingStage::asking) return;
  PartLeases::MappedServers wanted = std::move(map.value().servers);
  if (!writes || wanted.size() <= 1 || wanted.size() > event::most_servers_of_file) return decide(version);
  version.stage = StripingStage::asking;
  version.number = transport::new_number();
  striped_[version.number] = id;
  leases_.keep(version.number, std::move(wanted), now);
}

// Answers the clients that asked where the stripes are.
void DataSetExchange::decide(HeldVersion& version) {
  version.stage = StripingStage::decided;
  for (const Asker asker : std::exchange(version.waiting, {}))
    calls_.located({asker, 0, version.number, version.servers});
}

void DataSetExchange::kept(std::uint64_t number, const PartLeases::MappedServers& servers) {
  const DataSets::VersionId id = striped_.at(number);
  HeldVersion& version = version_of(id);
  if (servers.size() > 1) {
    version.servers = event::text_of(servers);
    version.striped = servers;
    version.file->stripe_servers = servers.size();
    sets_.stripe(id, servers.size());
  } else {
    striped_.erase(number);
    version.number = 0;
  }
  decide(version);
}

void DataSetExchange::lost(const event::ServerMap::MappedServer& server, const std::vector<std::uint64_t>& numbers) {
  calls_.log(fmt::format("{} version{} of data sets {} lost with the I/O server {}, which had parts of {}",
                         numbers.size(), numbers.size() == 1 ? "" : "s", numbers.size() == 1 ? "is" : "are",
                         server.name, numbers.size() == 1 ? "it" : "them"));
  for (const std::uint64_t number : numbers)
    if (const auto found = striped_.find(number); found != striped_.end()) carry_out(sets_.lose(found->second));
}

void DataSetExchange::wind_up() {
  ends_ = true;
  carry_out(sets_.cancel());
}

DataSetParts::Opened DataSetExchange::keep(const transport::KeptPart& part, SessionId home) {
  return ends_ ? DataSetParts::Opened{ECANCELED} : parts_.keep(part, home);
}

void DataSetExchange::say_what_is_lost() const {
  if (sets_.bytes() == 0) return;
  calls_.log(fmt::format("ends with {} bytes of data sets, of {} versions and {} parts of others, which are lost",
                         sets_.bytes(), sets_.versions(), parts_.count()));
}

std::string DataSetExchange::state() const {
  return fmt::format("data_sets {}\ndata_set_parts {}\nexchange_bytes {}\nexchange_limit {}\n", sets_.versions(),
                     parts_.count(), sets_.bytes(), sets_.limit());
}

}  // namespace hocket::server
