#include "malleable/methods.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

namespace hocket::runtime {
namespace {

// A value and its name in the environment.
template <class T>
struct NamedValue {
  std::string_view name;
  T value;
};

// Names as in the environment and in the records of reconfigurations.
constexpr std::array spawns{NamedValue<Spawn>{"merge", Spawn::merge}, NamedValue<Spawn>{"baseline", Spawn::baseline}};
constexpr std::array spawn_strategies{NamedValue<SpawnStrategy>{"plain", SpawnStrategy::plain},
                                      NamedValue<SpawnStrategy>{"single", SpawnStrategy::single},
                                      NamedValue<SpawnStrategy>{"parallel", SpawnStrategy::parallel},
                                      NamedValue<SpawnStrategy>{"async", SpawnStrategy::async},
                                      NamedValue<SpawnStrategy>{"single-async", SpawnStrategy::single_async},
                                      NamedValue<SpawnStrategy>{"parallel-async", SpawnStrategy::parallel_async},
                                      NamedValue<SpawnStrategy>{"join", SpawnStrategy::join}};
constexpr std::array worlds{NamedValue<Worlds>{"process", Worlds::process}, NamedValue<Worlds>{"node", Worlds::node}};
constexpr std::array placements{NamedValue<Placement>{"anywhere", Placement::anywhere},
                                NamedValue<Placement>{"compact", Placement::compact},
                                NamedValue<Placement>{"spread", Placement::spread}};
constexpr std::array methods{NamedValue<Method>{"collective", Method::collective},
                             NamedValue<Method>{"p2p", Method::p2p}, NamedValue<Method>{"rma-lock", Method::rma_lock},
                             NamedValue<Method>{"rma-lockall", Method::rma_lock_all}};
constexpr std::array strategies{
    NamedValue<Strategy>{"blocking", Strategy::blocking}, NamedValue<Strategy>{"wait-sources", Strategy::wait_sources},
    NamedValue<Strategy>{"wait-targets", Strategy::wait_targets}, NamedValue<Strategy>{"thread", Strategy::thread}};

template <class T, std::size_t n>
std::string_view name_in(const std::array<NamedValue<T>, n>& table, T value) {
  for (const auto& row : table)
    if (row.value == value) return row.name;
  return "";
}

// Sets `value` to the one of this name, and marks the table as `used`. Returns false if it has no such name.
template <class T, std::size_t n>
bool take_name(const std::array<NamedValue<T>, n>& table, std::string_view name, T& value, std::string_view& used) {
  for (const auto& row : table) {
    if (row.name != name) continue;
    value = row.value;
    used = name;
    return true;
  }
  return false;
}

// Parses an integer of at least `lowest`; the whole text must be the number.
std::optional<std::int64_t> whole(std::string_view text, std::int64_t lowest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < lowest) return std::nullopt;
  return value;
}

// Parses "ITERATION:PROCESSES[:METHODS],…"; returns no value if the text has another form.
std::optional<std::map<std::int64_t, ScheduledResize>> parse_schedule(std::string_view text) {
  std::map<std::int64_t, ScheduledResize> schedule;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t colon = entry.find(':');
    if (colon == entry.npos) return std::nullopt;
    const std::string_view size = entry.substr(colon + 1, entry.find(':', colon + 1) - colon - 1);
    const std::string_view names = entry.substr(std::min(entry.size(), colon + size.size() + 2));
    const auto iteration = whole(entry.substr(0, colon), 0);
    const auto processes = whole(size, 1);
    if (!iteration || !processes || !parse_methods(names, {}) || entry.ends_with(':')) return std::nullopt;
    schedule[*iteration] = {*processes, std::string(names)};
  }
  return schedule;
}

// Reads variables, and complains about invalid values.
class EnvironmentReader {
 public:
  EnvironmentReader(const std::function<const char*(const char*)>& get,
                    const std::function<void(std::string_view)>& complain)
      : get_(get), complain_(complain) {}

  // Sets `value` to the named one; complains, and leaves it, if the table has no such name.
  template <class T, std::size_t n>
  void choose(const char* key, const std::array<NamedValue<T>, n>& table, T& value) {
    const std::string_view text = read(key);
    if (text.empty()) return;
    std::string names;
    for (const auto& row : table) {
      if (row.name == text) value = row.value;
      names += (names.empty() ? "" : ", ") + std::string(row.name);
    }
    if (name_in(table, value) != text) wrong(key, text, "is none of " + names, name_in(table, value));
  }

  // Sets `value` to the number of seconds; complains, and leaves it, if the text is none above `least`.
  void seconds(const char* key, Duration& value, std::string_view used) {
    const std::string_view text = read(key);
    if (text.empty()) return;
    char* end = nullptr;
    const double number = std::strtod(text.data(), &end);  // getenv's text ends with a zero byte
    if (*end == '\0' && std::isfinite(number) && number > 0 && number < 1e8)
      value = from_s(number);
    else
      wrong(key, text, "is not a number of seconds above 0", used);
  }

  std::string_view read(const char* key) {
    const char* value = get_(key);
    return value ? value : "";
  }

  void wrong(const char* key, std::string_view text, const std::string& why, std::string_view used) {
    complain_(std::string(key) + "='" + std::string(text) + "' " + why + ": using " + std::string(used));
  }

 private:
  const std::function<const char*(const char*)>& get_;
  const std::function<void(std::string_view)>& complain_;
};

}  // namespace

std::string_view name_of(Spawn spawn) { return name_in(spawns, spawn); }
std::string_view name_of(SpawnStrategy strategy) { return name_in(spawn_strategies, strategy); }
std::string_view Names::of(Method method) { return name_in(methods, method); }
std::string_view Names::of(Strategy strategy) { return name_in(strategies, strategy); }

std::string Methods::text() const {
  return std::string(name_of(spawn)) + " " + std::string(name_of(spawn_strategy)) + ", " +
         std::string(Names::of(redistribution)) + " " + std::string(Names::of(redistribution_strategy));
}

std::array<std::string_view, 6> Methods::names() const {
  return {name_of(spawn),
          name_of(spawn_strategy),
          name_in(hocket::runtime::worlds, worlds),
          name_in(placements, placement),
          Names::of(redistribution),
          Names::of(redistribution_strategy)};
}

Result<Methods> parse_methods(std::string_view text, Methods chosen) {
  std::array<std::string_view, 6> used{};  // the name that chose from each table
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find('/'));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const auto before = used;
    const bool known = take_name(spawns, name, chosen.spawn, used[0]) ||
                       take_name(spawn_strategies, name, chosen.spawn_strategy, used[1]) ||
                       take_name(worlds, name, chosen.worlds, used[2]) ||
                       take_name(placements, name, chosen.placement, used[3]) ||
                       take_name(methods, name, chosen.redistribution, used[4]) ||
                       take_name(strategies, name, chosen.redistribution_strategy, used[5]);
    if (!known) return Error{"'" + std::string(name) + "' is no method: docs/malleable.md has their names"};
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!before[i].empty() && used[i].data() != before[i].data())
        return Error{"'" + std::string(before[i]) + "' and '" + std::string(name) + "' exclude each other: give one"};
  }
  return chosen;
}

ResizeSettings read_resize_settings(const std::function<const char*(const char*)>& get,
                                    const std::function<void(std::string_view)>& complain) {
  ResizeSettings settings;
  EnvironmentReader reader(get, complain);
  reader.choose("HOCKET_SPAWN", spawns, settings.methods.spawn);
  reader.choose("HOCKET_SPAWN_STRATEGY", spawn_strategies, settings.methods.spawn_strategy);
  reader.choose("HOCKET_WORLDS", worlds, settings.methods.worlds);
  reader.choose("HOCKET_PLACEMENT", placements, settings.methods.placement);
  reader.choose("HOCKET_REDISTRIBUTION", methods, settings.methods.redistribution);
  reader.choose("HOCKET_REDISTRIBUTION_STRATEGY", strategies, settings.methods.redistribution_strategy);
  if (const auto text = reader.read("HOCKET_PROCESSES"); !text.empty()) {
    if (const auto number = whole(text, 1))
      settings.processes = *number;
    else
      reader.wrong("HOCKET_PROCESSES", text, "is not a number of processes", "as many as there are");
  }
  if (const auto text = reader.read("HOCKET_RESIZE"); !text.empty()) {
    if (auto schedule = parse_schedule(text))
      settings.schedule = std::move(*schedule);
    else
      reader.wrong("HOCKET_RESIZE", text, "is not of the form ITERATION:PROCESSES[:METHODS],…", "none");
  }
  reader.seconds("HOCKET_RESIZE_MAX_S", settings.limit, "60");
  reader.seconds("HOCKET_RESIZE_WAIT_S", settings.wait_at_end, "0");
  if (const auto text = reader.read("HOCKET_BALANCE"); !text.empty()) {
    if (text == "0" || text == "resize")
      settings.balance = text == "0" ? Balance::never : Balance::at_resizes;
    else if (text != "1")
      reader.wrong("HOCKET_BALANCE", text, "is none of 0, resize, and 1", "1");
  }
  return settings;
}

}  // namespace hocket::runtime
