#include "server/data_sets.hpp"

#include <algorithm>
#include <cerrno>

#include "layout/stripes.hpp"

namespace hocket::server {
namespace {

using enum DataSets::DataSetOutcome::OutcomeKind;

constexpr std::size_t most_characters = 255;
constexpr std::int64_t most_participants = 1 << 20;

bool is_name(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return !text.empty() && text.size() <= most_characters && std::none_of(text.begin(), text.end(), is_control);
}

// A copy has one writer and one reader: the name that adopts it.
bool is_copy(const DataSets::JoinRequest& what) {
  return what.writes && what.participants == 1 && what.readers == 1 && !what.name.empty();
}

bool is_between(std::int64_t value, std::int64_t least, std::int64_t most) { return value >= least && value <= most; }

DataSets::DataSetOutcome refusal(DataSets::GroupMember member, int error) {
  return {refused, member, error, 0, false, 0, 0};
}

}  // namespace

bool DataSets::JoinRequest::agrees(const JoinRequest& other) const {
  return name == other.name && application == other.application && group == other.group && writes == other.writes &&
         participants == other.participants && (!writes || readers == other.readers);
}

// ---- groups --------------------------------------------------------------------------------------------------------

// Returns the state of the name. If the table is full, the idle name that was used least recently makes room. Returns
// nullptr if no name is idle.
DataSets::Name* DataSets::name_for(const std::string& text) {
  if (const auto found = names_.find(text); found != names_.end()) return &found->second;
  if (names_.size() >= settings_.most_names) {
    const auto goes_first = [](const auto& one, const auto& other) {
      if (one.second.is_idle() != other.second.is_idle()) return one.second.is_idle();
      return one.second.used < other.second.used;
    };
    const auto oldest = std::min_element(names_.begin(), names_.end(), goes_first);
    if (oldest == names_.end() || !oldest->second.is_idle()) return nullptr;
    names_.erase(oldest);
  }
  return &names_[text];
}

// Returns the group with that number, which may be new. Returns nullptr under the same condition as `name_for`.
DataSets::Group* DataSets::group_for(const JoinRequest& what) {
  const auto key = std::pair{what.name, what.group};
  if (const auto found = groups_.find(key); found != groups_.end()) return &found->second;
  Name* name = name_for(what.name);
  if (name == nullptr) return nullptr;
  ++name->groups;
  name->used = ++last_group_;
  Group& group = groups_[key];
  group.what = what;
  group.name = name;
  group.deadline = deadlines_.emplace(Time::max(), &group);
  return &group;
}

DataSets::DataSetOutcomes DataSets::join(GroupMember member, const JoinRequest& what, Time now) {
  const std::string_view name = std::string_view{what.name}.substr(what.moves && is_copy(what) ? 1 : 0);
  const bool is_good = is_name(name) && is_name(what.application) &&
                       is_between(what.participants, 1, most_participants) &&
                       is_between(what.readers, 0, static_cast<std::int64_t>(settings_.most_applications));
  if (!is_good || members_.contains(member)) return {refusal(member, EINVAL)};
  if (sends_away(what.name)) return {refusal(member, ESHUTDOWN)};
  if (what.writes && settings_.most_bytes == 0) return {refusal(member, ENOSPC)};
  Group* group = group_for(what);
  if (group == nullptr) return {refusal(member, ENOSPC)};
  const auto same = group->members.lower_bound({member.client, 0});
  const bool is_twice = same != group->members.end() && same->client == member.client;
  if (group->stage != GroupStage::gathers || is_twice || !group->what.agrees(what)) return {refusal(member, EINVAL)};
  group->members.insert(member);
  members_.emplace(member, group);
  hurry(*group, now + std::clamp(what.patience, Duration::zero(), settings_.most_patience));
  DataSetOutcomes told;
  if (static_cast<std::int64_t>(group->members.size()) < what.participants) return told;
  group->stage = GroupStage::waits;
  waiting_.push_back(group);
  serve_waiting(told);
  return told;
}

// Shortens the group's deadline: it waits no longer than the shortest time limit of its members.
void DataSets::hurry(Group& group, Time deadline) {
  if (group.deadline->first <= deadline) return;
  deadlines_.erase(group.deadline);
  group.deadline = deadlines_.emplace(deadline, &group);
}

// Removes a group that has not been served. Its members are answered, except `but`, which has disconnected.
void DataSets::refuse(Group& group, int error, GroupMember but, DataSetOutcomes& told) {
  for (const GroupMember& member : group.members) {
    members_.erase(member);
    if (member != but) told.push_back(refusal(member, error));
  }
  waiting_.remove(&group);
  deadlines_.erase(group.deadline);
  remove(group);
}

void DataSets::remove(Group& group) {
  Name& name = *group.name;
  const auto key = std::pair{group.what.name, group.what.group};
  --name.groups;
  groups_.erase(key);
  // A name without any published version carries no information.
  if (name.is_idle() && name.last == 0) names_.erase(key.first);
}

DataSets::DataSetOutcomes DataSets::expire(Time now) {
  DataSetOutcomes told;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    refuse(*deadlines_.begin()->second, ETIMEDOUT, {}, told);
  }
  return told;
}

DataSets::DataSetOutcomes DataSets::cancel() {
  DataSetOutcomes told;
  while (!deadlines_.empty()) refuse(*deadlines_.begin()->second, ECANCELED, {}, told);
  return told;
}

std::optional<Time> DataSets::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional{deadlines_.begin()->first};
}

// ---- serving groups ------------------------------------------------------------------------------------------------

// Serves all groups that can be served now, in the order in which they became complete. A group that must wait does
// not block later ones.
void DataSets::serve_waiting(DataSetOutcomes& told) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Group& group = **next;
    if (group.name->moving) {
      ++next;
      continue;
    }
    const VersionId version = group.what.writes ? begin(group, told) : choose(group);
    next = version == 0 ? std::next(next) : waiting_.erase(next);
    if (version == 0) continue;
    versions_.at(version).lost ? tell_loss(group, version, told) : serve(group, version, told);
  }
}

void DataSets::serve(Group& group, VersionId id, DataSetOutcomes& told) {
  group.stage = GroupStage::has_open;
  group.version = id;
  deadlines_.erase(group.deadline);
  Version& version = versions_.at(id);
  if (!group.what.writes) {
    ++version.held;
    group.name->reading.insert(group.what.application);
    if (version.readers > 0) version.given.insert(group.what.application);
  }
  for (const GroupMember& member : group.members) {
    told.push_back({served, member, 0, id, group.what.writes, version.number, version.length});
  }
}

// Refuses a group to which a lost version would have been given. The application has then read it.
void DataSets::tell_loss(Group& group, VersionId id, DataSetOutcomes& told) {
  Name& name = *group.name;
  const std::string application = group.what.application;
  Version& version = versions_.at(id);
  version.given.insert(application);
  ++version.done;
  remember(name, application, version.number);
  forget_read(name, told);
  refuse(group, ENODATA, {}, told);
}

// Creates a version for a group that writes. Returns 0 if the group has to wait.
DataSets::VersionId DataSets::begin(const Group& group, DataSetOutcomes& told) {
  Name& name = *group.name;
  const auto unread = std::count_if(name.published.begin(), name.published.end(),
                                    [this](const auto& one) { return versions_.at(one.second).readers > 0; });
  if (name.writing != 0 || unread >= settings_.most_unread || !make_room(name, told)) return 0;
  Version version;
  version.name = &name;
  version.number = name.last + 1;
  version.expected = name.largest;
  version.readers = group.what.readers;
  if (group.what.moves) version.mover = group.members.begin()->client;
  name.writing = ++last_version_;
  versions_.emplace(name.writing, std::move(version));
  return name.writing;
}

// True if a version of that size is expected to fit beside all others. Versions that are being written count with the
// size that is expected of them.
bool DataSets::has_room(std::int64_t bytes) const {
  std::int64_t taken = 0;
  for (const auto& [id, version] : versions_) taken += std::max(version.bytes, version.expected);
  return taken <= settings_.most_bytes - part_bytes_ - bytes;
}

// True if there is room for another version of the name. If necessary, versions of the name without declared readers
// are forgotten, oldest first. It forgets nothing if that would not suffice.
bool DataSets::make_room(Name& name, DataSetOutcomes& told) {
  const auto is_spare = [this](const auto& one) {
    const Version& version = versions_.at(one.second);
    return version.readers == 0 && version.held == 0;
  };
  std::int64_t spare = 0;
  for (const auto& one : name.published) spare += is_spare(one) ? versions_.at(one.second).bytes : 0;
  if (!has_room(name.largest - spare)) return false;
  for (auto one = name.published.begin(); one != name.published.end() && !has_room(name.largest);) {
    const bool goes = is_spare(*one);
    if (goes) forget(one->second, told);
    one = goes ? name.published.erase(one) : std::next(one);
  }
  return true;
}

// Returns the version that a group is to read; 0 if it has to wait. The oldest unread version is chosen. An
// application that has not read this name before gets the newest of the versions without declared readers.
DataSets::VersionId DataSets::choose(const Group& group) const {
  const Name& name = *group.name;
  const std::string& application = group.what.application;
  if (name.reading.contains(application)) return 0;
  const auto read = name.read.find(application);
  const bool is_new = read == name.read.end();
  VersionId chosen = 0;
  for (auto one = is_new ? name.published.begin() : name.published.upper_bound(read->second);
       one != name.published.end(); ++one) {
    const Version& version = versions_.at(one->second);
    const bool is_for_all = version.readers == 0;
    const bool is_given_away =
        version.given.contains(application) || static_cast<std::int64_t>(version.given.size()) >= version.readers;
    if (!is_for_all && (is_given_away || chosen != 0)) continue;
    chosen = one->second;
    if (!is_new || !is_for_all) break;  // else look for a newer one
  }
  return chosen;
}

// ---- from writing to forgetting ------------------------------------------------------------------------------------

DataSets::Answered DataSets::grow(GroupMember member, std::int64_t end) {
  const auto found = members_.find(member);
  if (found == members_.end() || !found->second->what.writes) return {EBADF, {}};
  Group& group = *found->second;
  if (group.stage != GroupStage::has_open) return {ECANCELED, {}};
  Version& version = versions_.at(group.version);
  version.length = std::max(version.length, end);
  const std::int64_t more = std::max<std::int64_t>(layout::bytes_of_server(end, 0, version.servers) - version.bytes, 0);
  if (more <= settings_.most_bytes - bytes()) {
    version.bytes += more;
    bytes_ += more;
    return {};
  }
  Answered answered{ENOSPC, {}};
  fail(group, answered.outcomes);
  serve_waiting(answered.outcomes);
  return answered;
}

DataSets::Answered DataSets::close(GroupMember member, bool intact, std::int64_t end) {
  const auto found = members_.find(member);
  if (found == members_.end()) return {EBADF, {}};
  Group& group = *found->second;
  Answered answered;
  if (!intact) fail(group, answered.outcomes);
  if (group.what.writes && group.stage == GroupStage::has_open) {
    std::int64_t& length = versions_.at(group.version).length;
    length = std::max(length, end);
  }
  if (group.stage == GroupStage::failed) answered.error = ECANCELED;
  leave(member, group, answered.outcomes);
  serve_waiting(answered.outcomes);
  return answered;
}

DataSets::VersionId DataSets::version_of(GroupMember member) const {
  const auto found = members_.find(member);
  if (found == members_.end() || found->second->stage != GroupStage::has_open) return 0;
  return found->second->version;
}

DataSets::DataSetOutcomes DataSets::lose(VersionId id) {
  DataSetOutcomes told;
  const auto found = versions_.find(id);
  if (found == versions_.end() || found->second.lost) return told;
  Version& version = found->second;
  if (version.name->writing == id) {
    const auto writes = [id](const auto& one) {
      return one.second.what.writes && one.second.stage == GroupStage::has_open && one.second.version == id;
    };
    fail(std::find_if(groups_.begin(), groups_.end(), writes)->second, told);
  } else {
    version.lost = true;
    // Who reads it goes on with the servers that are left, and meets an error at the lost one.
    if (version.held == 0) free(id, told);
  }
  serve_waiting(told);
  return told;
}

bool DataSets::take(std::int64_t more) {
  const bool fits = more <= settings_.most_bytes - bytes();
  if (fits) part_bytes_ += more;
  return fits;
}

DataSets::DataSetOutcomes DataSets::give(std::int64_t less) {
  DataSetOutcomes told;
  part_bytes_ -= less;
  serve_waiting(told);
  return told;
}

DataSets::DataSetOutcomes DataSets::gone(std::uint64_t client) {
  DataSetOutcomes told;
  for (auto next = members_.lower_bound({client, 0}); next != members_.end() && next->first.client == client;
       next = members_.lower_bound({client, 0})) {
    const auto [member, group] = *next;
    if (group->stage == GroupStage::gathers || group->stage == GroupStage::waits) {
      refuse(*group, ECANCELED, member, told);
    } else {
      fail(*group, told);
      leave(member, *group, told);
    }
  }
  // Copies that nobody can adopt any more.
  for (auto one = names_.begin(); one != names_.end() && one->first.starts_with('\x01');) {
    Name& name = one->second;
    const bool is_its = !name.published.empty() && versions_.at(name.published.begin()->second).mover == client;
    if (is_its) forget_all(name, told);
    one = is_its ? names_.erase(one) : std::next(one);
  }
  serve_waiting(told);
  return told;
}

void DataSets::leave(GroupMember member, Group& group, DataSetOutcomes& told) {
  members_.erase(member);
  group.members.erase(member);
  if (group.members.empty()) finish(group, told);
}

// Takes the version from a group, which has then neither written nor read it. Its members still have to close it. A
// declared reader that failed frees its place for another application.
void DataSets::fail(Group& group, DataSetOutcomes& told) {
  if (group.stage != GroupStage::has_open) return;
  group.stage = GroupStage::failed;
  Name& name = *group.name;
  if (group.what.writes) {
    name.writing = 0;
    return forget(group.version, told);
  }
  name.reading.erase(group.what.application);
  versions_.at(group.version).given.erase(group.what.application);
}

// Ends a group whose members have all closed: publishes what it wrote, or notes what it read.
void DataSets::finish(Group& group, DataSetOutcomes& told) {
  Name& name = *group.name;
  const bool is_good = group.stage == GroupStage::has_open;
  if (!group.what.writes) {
    Version& version = versions_.at(group.version);
    if (--version.held == 0 && version.lost) free(group.version, told);
    if (is_good) {
      ++version.done;
      name.reading.erase(group.what.application);
      remember(name, group.what.application, version.number);
    }
  } else if (is_good) {
    publish(group);
  }
  forget_read(name, told);
  remove(group);
}

void DataSets::publish(Group& group) {
  Name& name = *group.name;
  Version& version = versions_.at(group.version);
  version.expected = 0;
  name.last = version.number;
  name.largest = std::max(name.largest, version.bytes);
  name.published.emplace(version.number, std::exchange(name.writing, 0));
}

// Notes what the application read last. If too many applications are remembered, the one with the oldest version
// goes.
void DataSets::remember(Name& name, const std::string& application, std::uint32_t number) {
  if (name.read.size() >= settings_.most_applications && !name.read.contains(application)) {
    name.read.erase(std::min_element(name.read.begin(), name.read.end(),
                                     [](const auto& one, const auto& other) { return one.second < other.second; }));
  }
  name.read[application] = number;
}

// Frees the memory of a version.
void DataSets::free(VersionId version, DataSetOutcomes& told) {
  bytes_ -= std::exchange(versions_.at(version).bytes, 0);
  told.push_back({forgotten, {}, 0, version, false, 0, 0});
}

void DataSets::forget(VersionId version, DataSetOutcomes& told) {
  // The memory of a lost version is free already.
  if (!versions_.at(version).lost) free(version, told);
  versions_.erase(version);
}

// Forgets all published versions. The name itself stays.
void DataSets::forget_all(Name& name, DataSetOutcomes& told) {
  for (const auto& [number, version] : std::exchange(name.published, {})) forget(version, told);
}

// Forgets the published versions that no application will read any more, and none has open.
void DataSets::forget_read(Name& name, DataSetOutcomes& told) {
  for (auto one = name.published.begin(); one != name.published.end();) {
    const Version& version = versions_.at(one->second);
    const bool is_over = version.readers > 0 ? version.done >= version.readers : version.number < name.last;
    if (!is_over || version.held > 0) {
      ++one;
      continue;
    }
    forget(one->second, told);
    one = name.published.erase(one);
  }
}

}  // namespace hocket::server
