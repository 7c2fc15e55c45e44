#include "policy/combination.hpp"

#include <vector>

#include "base/nearest.hpp"

namespace hocket::policy {
namespace {

constexpr const CorePolicy* known[] = {&phase_shift, &period_coupling, &fair, &speedup, &io_aware, &predictive};
constexpr const ServerPolicy* known_servers[] = {
    &set_aside,
    &weigh,
    &arbitration_policies[0],
    &arbitration_policies[1],
    &arbitration_policies[2],
    &arbitration_policies[3],
    &arbitration_policies[4],
    &arbitration_policies[5],
    &arbitration_policies[6],
};
static_assert(std::size(known_servers) == 2 + std::size(allocation::policies));
constexpr std::string_view none = "none";

// Splits the text at each '+' and trims spaces. Empty names stay, so that add() can refuse them.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> names;
  for (;;) {
    const std::size_t plus = text.find('+');
    std::string_view name = text.substr(0, plus);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    names.push_back(name);
    if (plus == std::string_view::npos) return names;
    text.remove_prefix(plus + 1);
  }
}

template <class List>
auto find(const List& list, std::string_view name) -> std::decay_t<decltype(*list.begin())> {
  for (const auto* one : list) {
    if (one->name == name) return one;
  }
  return nullptr;
}

// Returns an error that lists all names. It quotes at most 64 characters, as the text comes from a client.
Error unknown(std::string_view name, const Loaded& loaded) {
  std::vector<std::string_view> names;
  for (const Policy* policy : policies()) names.push_back(policy->name);
  for (const CorePolicy* policy : known) names.push_back(policy->name);
  for (const ServerPolicy* policy : known_servers) names.push_back(policy->name);
  if (loaded.access) names.push_back(loaded.access->name);
  if (loaded.core) names.push_back(loaded.core->name);
  if (loaded.servers) names.push_back(loaded.servers->name);
  names.push_back(none);
  std::string all;
  for (const std::string_view one : names) all.append(all.empty() ? "" : ", ").append(one);
  const std::string there_are = "there are: " + all + "; several are joined by '+'";
  if (name.empty()) return Error{"a policy without a name: " + there_are};
  return Error{"unknown policy '" + std::string{name.substr(0, 64)} + "': did you mean '" +
               std::string{nearest(name, names)} + "'? " + there_are};
}

// Puts the policy in its place. Fails if another policy of the same kind is there.
template <class P>
Status set(const P*& place, const P* policy, std::string_view kind) {
  if (place) {
    return Error{"policies '" + std::string{place->name} + "' and '" + std::string{policy->name} + "' are both " +
                 std::string{kind} + ": name one of them"};
  }
  place = policy;
  return success();
}

// Returns the policy of that name, a loaded one first; nullptr if there is none of this kind.
template <class P, class List>
const P* find(const P* loaded, const List& list, std::string_view name) {
  return loaded != nullptr && loaded->name == name ? loaded : find(list, name);
}

// Adds the policy of that name. `access` stays nullptr while no name is of that kind.
Status add(std::string_view name, const Loaded& loaded, const Policy*& access, Combination& combination) {
  if (const Policy* policy = find(loaded.access, policies(), name)) return set(access, policy, "for access to targets");
  if (const ServerPolicy* policy = find(loaded.servers, server_policies(), name))
    return set(combination.servers, policy, "for I/O servers");
  const CorePolicy* policy = find(loaded.core, core_policies(), name);
  if (!policy) return unknown(name, loaded);
  if (policy->kind == CoreKind::sharing) return set(combination.sharing, policy, "for sharing out cores");
  return set(combination.interference, policy, "against interference");
}

}  // namespace

std::span<const CorePolicy* const> core_policies() { return known; }
std::span<const ServerPolicy* const> server_policies() { return known_servers; }

Result<Combination> parse_combination(std::string_view text, const Loaded& loaded, const Combination& before) {
  Combination combination;
  const Policy* access = nullptr;
  const std::vector<std::string_view> names = split(text);
  if (names.size() == 1 && names.front() == none) return combination;
  for (const std::string_view name : names) {
    if (name == none)
      return Error{"policy 'none' with others in '" + std::string{text.substr(0, 64)} +
                   "': name it alone, or leave it out"};
    if (const Status added = add(name, loaded, access, combination); !added) return added.error();
  }
  if (!access && !combination.interference && !combination.sharing) {  // it names a policy for I/O servers alone
    const ServerPolicy* const servers = combination.servers;
    combination = before;
    combination.servers = servers;
    return combination;
  }
  combination.access = access ? access : &fcfs;
  return combination;
}

Combination with(Combination combination, const Loaded& loaded) {
  if (loaded.access) combination.access = loaded.access;
  if (loaded.servers) combination.servers = loaded.servers;
  if (!loaded.core) return combination;
  const bool shares = loaded.core->kind == CoreKind::sharing;
  (shares ? combination.sharing : combination.interference) = loaded.core;
  return combination;
}

std::string text_of(const Combination& combination) {
  std::string text;
  const auto append = [&](std::string_view name) { text.append(text.empty() ? "" : "+").append(name); };
  append(combination.access->name);
  if (combination.interference) append(combination.interference->name);
  if (combination.sharing) append(combination.sharing->name);
  if (combination.servers) append(combination.servers->name);
  return text;
}

}  // namespace hocket::policy
