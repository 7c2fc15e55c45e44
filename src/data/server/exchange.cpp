#include "server/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

namespace hocket::server {
namespace {

DataSets::GroupMember member_of(Asker asker) { return {asker.session, asker.request}; }

// Decodes a join frame. Time limits above a day are cut, so that the sum with a time cannot overflow.
DataSets::JoinRequest read_joining(const transport::Header& header, std::string_view meta) {
  DataSets::JoinRequest what;
  const std::size_t end = std::min(meta.find('\n'), meta.size());
  what.name = meta.substr(0, end);
  what.application = meta.substr(std::min(end + 1, meta.size()));
  what.group = header.operation;
  what.writes = header.has(transport::flag::writes);
  what.participants = header.number;
  what.readers = what.writes ? header.bytes : 0;
  constexpr std::int64_t most_ms = std::chrono::milliseconds{std::chrono::hours{24}}.count();
  what.patience = std::chrono::milliseconds{std::min(header.offset, most_ms)};
  return what;
}

// Makes an anonymous file in memory, with a descriptor for each direction. Both are invalid if the system refuses.
std::pair<Fd, Fd> make_memory() {
  Fd writable{memfd_create("hocket-data-set", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  Fd readable{writable ? fcntl(writable.get(), F_DUPFD_CLOEXEC, 0) : -1};
  return {std::move(readable), std::move(writable)};
}

}  // namespace

void DataSetExchange::join(Asker asker, const transport::Header& header, std::string_view meta, Time now) {
  // A client either reads or writes a version. `DataSets` checks names and numbers.
  if (header.has(transport::flag::reads) == header.has(transport::flag::writes)) {
    return joined_({asker, EINVAL});
  }
  carry_out(sets_.join(member_of(asker), read_joining(header, meta), now));
}

int DataSetExchange::grow(Asker joined, std::int64_t end) {
  DataSets::Answered answered = sets_.grow(member_of(joined), end);
  carry_out(std::move(answered.outcomes));
  return answered.error;
}

void DataSetExchange::closes(Asker joined, Asker close, const FilePtr& file) {
  closing_[{close.session, close.request}] = {member_of(joined), file};
}

void DataSetExchange::finish(Answer& answer) {
  if (closing_.empty()) return;
  const auto found = closing_.find({answer.to.session, answer.to.request});
  if (found == closing_.end()) return;
  const Closing closing = std::move(found->second);
  closing_.erase(found);
  DataSets::Answered answered = sets_.close(closing.member, answer.error == 0 && !closing.file->lost_write);
  if (answer.error == 0) answer.error = answered.error;
  carry_out(std::move(answered.outcomes));
}

void DataSetExchange::gone(SessionId session) {
  closing_.erase(closing_.lower_bound({session, 0}), closing_.lower_bound({session + 1, 0}));
  carry_out(sets_.gone(session));
}

// ---- what the data sets say ----------------------------------------------------------------------------------------

// Answers the members and frees the versions. The list grows while it is processed: if no memory file can be made for
// a version, closing it has outcomes of its own.
void DataSetExchange::carry_out(DataSets::DataSetOutcomes outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const DataSets::DataSetOutcome one = outcomes[i];
    const Asker asker{one.member.client, one.member.join};
    switch (one.kind) {
      case DataSets::DataSetOutcome::OutcomeKind::refused: joined_({asker, one.error}); break;
      case DataSets::DataSetOutcome::OutcomeKind::forgotten: drop(one.version); break;
      case DataSets::DataSetOutcome::OutcomeKind::served: {
        const FilePtr file = file_of(one.version);
        if (file) {
          ++file->handles;
          joined_({asker, 0, file, one.writes, one.number, one.bytes});
          break;
        }
        joined_({asker, ENOSPC});
        const auto [error, more] = sets_.close(one.member, false);
        outcomes.insert(outcomes.end(), more.begin(), more.end());
      }
    }
  }
}

// Returns the version's memory file, which its first member creates; nullptr if that failed.
FilePtr DataSetExchange::file_of(DataSets::VersionId version) {
  const auto [place, is_new] = versions_.try_emplace(version);
  if (is_new) {
    auto [readable, writable] = make_memory();
    if (readable) place->second = files_.add("a data set", std::move(readable), std::move(writable));
  }
  return place->second;
}

// Frees a version's memory at once, even if late clients have it open or requests are under way. The seal prevents
// these from making the file longer again.
void DataSetExchange::drop(DataSets::VersionId version) {
  const auto dropped = versions_.extract(version);
  if (dropped.empty() || !dropped.mapped()) return;
  ServerFile& file = *dropped.mapped();
  file.dropped = true;
  fcntl(file.writable.get(), F_ADD_SEALS, F_SEAL_GROW);
  // This can fail only for a descriptor that is no such file.
  if (ftruncate(file.writable.get(), 0) != 0) return;
}

std::string DataSetExchange::state() const {
  return fmt::format("data_sets {}\nexchange_bytes {}\nexchange_limit {}\n", sets_.versions(), sets_.bytes(),
                     sets_.limit());
}

}  // namespace hocket::server
