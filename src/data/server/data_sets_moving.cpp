// Names that move from one home to another.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/data_sets.hpp"

namespace hocket::server {

bool DataSets::is_home_of(const std::string& text) const {
  const auto found = names_.find(text);
  return found != names_.end() && found->second.is_known();
}

bool DataSets::sends_away(const std::string& text) const {
  const auto found = names_.find(text);
  return drained_ && (found == names_.end() || (found->second.published.empty() && found->second.writing == 0));
}

bool DataSets::is_open(const std::string& text) const {
  for (auto one = groups_.lower_bound({text, 0}); one != groups_.end() && one->first.first == text; ++one) {
    const GroupStage stage = one->second.stage;
    if (stage == GroupStage::has_open || stage == GroupStage::failed) return true;
  }
  return false;
}

std::vector<DataSets::MovableName> DataSets::movable() const {
  std::vector<MovableName> all;
  for (const auto& [text, name] : names_) {
    if (text.starts_with('\x01') || name.moving || is_open(text)) continue;
    MovableName& one = all.emplace_back(MovableName{text, name.is_known(), {}});
    for (const auto& [number, version] : name.published) one.versions.push_back(version);
  }
  return all;
}

DataSets::Moving DataSets::begin_move(const std::string& text) {
  Name& name = names_.at(text);
  name.moving = true;
  Moving moving{{text, name.last, name.read, {}}, {}};
  for (const auto& [number, id] : name.published) {
    const Version& version = versions_.at(id);
    moving.moved.versions.push_back({number, 0, version.readers, version.done, version.given});
    moving.versions.push_back({version.lost ? 0 : id, version.length});
  }
  return moving;
}

DataSets::DataSetOutcomes DataSets::end_move(const std::string& text, bool has_moved) {
  DataSetOutcomes told;
  const auto found = names_.find(text);
  if (found == names_.end()) return told;
  found->second.moving = false;
  if (has_moved) {
    forget_all(found->second, told);
    for (auto one = groups_.lower_bound({text, 0}); one != groups_.end() && one->first.first == text;
         one = groups_.lower_bound({text, 0}))
      refuse(one->second, ESHUTDOWN, {}, told);
    names_.erase(text);
  }
  serve_waiting(told);
  return told;
}

// Returns the version that the client has written as this copy; 0 if there is none.
DataSets::VersionId DataSets::copy_of(std::uint64_t client, std::uint64_t copy) const {
  const auto found = names_.find(name_of_copy(std::to_string(copy)));
  if (found == names_.end() || found->second.published.empty()) return 0;
  const VersionId id = found->second.published.begin()->second;
  const Version& version = versions_.at(id);
  return version.mover == client && !version.lost ? id : 0;
}

DataSets::Answered DataSets::adopt(std::uint64_t client, const MovedName& moved) {
  const auto is_wrong = [&moved](const MovedVersion& version) {
    const auto given = static_cast<std::int64_t>(version.given.size());
    return version.number == 0 || version.number > moved.last || (version.readers > 0 && given > version.readers);
  };
  const auto rises = [](const MovedVersion& one, const MovedVersion& next) { return one.number < next.number; };
  const auto& versions = moved.versions;
  const auto out_of_order = [&](const MovedVersion& one, const MovedVersion& next) { return !rises(one, next); };
  if (moved.name.empty() || moved.name.starts_with('\x01') || std::ranges::any_of(versions, is_wrong) ||
      std::ranges::adjacent_find(versions, out_of_order) != versions.end())
    return {EINVAL, {}};
  const auto is_missing = [&](const MovedVersion& one) { return one.copy != 0 && copy_of(client, one.copy) == 0; };
  if (std::ranges::any_of(versions, is_missing)) return {ESTALE, {}};
  if (drained_) return {ESHUTDOWN, {}};
  const auto found = names_.find(moved.name);
  const bool is_own = found != names_.end() && found->second.moving;
  if (found != names_.end() && !is_own &&
      (found->second.writing != 0 || !found->second.published.empty() || is_open(moved.name)))
    return {EEXIST, {}};
  Name* const name = name_for(moved.name);
  if (name == nullptr) return {ENOSPC, {}};
  name->used = ++last_group_;
  Answered answered;
  forget_all(*name, answered.outcomes);
  for (const MovedVersion& version : versions) {
    const VersionId id = version.copy == 0 ? ++last_version_ : copy_of(client, version.copy);
    Version& its = versions_[id];
    if (version.copy == 0) its.lost = true;
    names_.erase(name_of_copy(std::to_string(version.copy)));
    its.name = name;
    its.number = version.number;
    its.readers = version.readers;
    its.done = version.done;
    its.given = version.given;
    its.mover = 0;
    name->published.emplace(version.number, id);
    name->largest = std::max(name->largest, its.bytes);
  }
  name->last = std::max(name->last, moved.last);
  for (const auto& [application, number] : moved.read) remember(*name, application, number);
  forget_read(*name, answered.outcomes);
  serve_waiting(answered.outcomes);
  return answered;
}

std::vector<DataSets::NameLoad> DataSets::loads() const {
  std::map<const Name*, NameLoad> of_names;
  for (const auto& [id, version] : versions_) {
    NameLoad& load = of_names[version.name];
    load.versions += version.lost ? 0 : 1;
    load.bytes += version.bytes;
  }
  std::vector<NameLoad> all;
  for (const auto& [text, name] : names_) {
    const auto found = of_names.find(&name);
    if (found == of_names.end() || found->second.versions == 0 || text.starts_with('\x01')) continue;
    found->second.name = text;
    all.push_back(found->second);
  }
  return all;
}

}  // namespace hocket::server
