#include "config/settings.hpp"

#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <sched.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <thread>
#include <variant>

#include "base/nearest.hpp"
#include "event/properties.hpp"
#include "policy/combination.hpp"

namespace hocket::config {
namespace {

// Upper bound of all times; a longer one is likely a typing error.
constexpr double a_year_s = 365 * 24 * 3600.0;

// The checks of values. Each returns what is wrong and what to give instead, or "".
using CheckText = std::string (*)(const std::string&);
using CheckNumber = std::string (*)(double);
using CheckCount = std::string (*)(std::int64_t);

std::string any_text(const std::string&) { return {}; }

// Parsing is the check, so a text that passes can be parsed again without an error.
std::string a_policy(const std::string& name) {
  const auto found = policy::parse_combination(name);
  return found ? std::string{} : found.error().text;
}

// Refuses a word that is not in the list, and suggests the nearest one.
std::string one_of(const std::string& what, const std::string& word, const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, word) != known.end()) return {};
  return fmt::format("unknown {} '{}': did you mean '{}'?", what, word, nearest(word, known));
}

std::string an_objective(const std::string& name) { return one_of("objective", name, {"flops", "iterations"}); }

constexpr std::int64_t most_cores = 1'000'000'000;

// Parses "NAME:CORES NAME:CORES …"; the error says what is wrong. A name may contain colons: the last one counts.
Result<std::vector<model::Node>> parse_nodes(const std::string& text) {
  std::vector<model::Node> nodes;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    const std::size_t colon = word.rfind(':');
    std::int64_t cores = 0;
    const char* end = word.data() + word.size();
    const bool number = colon != std::string::npos && colon > 0 &&
                        std::from_chars(word.data() + colon + 1, end, cores).ptr == end && colon + 1 < word.size();
    if (!number || cores < 1 || cores > most_cores) {
      return Error{fmt::format("'{}' is no node: write NAME:CORES, with at least 1 core, for each", word)};
    }
    const std::string name = word.substr(0, colon);
    const auto same = [&name](const model::Node& node) { return node.name == name; };
    if (std::ranges::any_of(nodes, same)) return Error{fmt::format("node '{}' is named twice", name)};
    nodes.push_back({name, cores});
  }
  return nodes;
}

std::string some_nodes(const std::string& text) {
  const auto nodes = parse_nodes(text);
  return nodes ? std::string{} : nodes.error().text;
}

std::string a_level(const std::string& name) { return one_of("level", name, {"error", "warning", "info", "debug"}); }

std::string not_negative(double seconds) {
  if (seconds >= 0 && seconds <= a_year_s) return {};
  return fmt::format("{} s is no time: give 0 or more, and at most a year", seconds);
}

std::string positive(double seconds) {
  if (seconds >= 0.001 && seconds <= a_year_s) return {};
  return fmt::format("{} s is no time for this: give at least 0.001, and at most a year", seconds);
}

// The value -1 stands for what the coordinator observes, or for the value of the policy in force.
std::string a_time_or_observed(double seconds) { return seconds == -1 ? std::string{} : not_negative(seconds); }

std::string a_share(double share) {
  if (share >= 0 && share <= 1) return {};
  return fmt::format("{} is no share: give 0 to 1", share);
}

std::string a_share_or_of_policy(double share) { return share == -1 ? std::string{} : a_share(share); }

// A factor of 1 or more, since a server as fast as its peers is not slow. 0 turns the detector off.
std::string a_margin(double margin) {
  if (margin == 0 || (margin >= 1 && margin <= 1e6)) return {};
  return fmt::format("{} is no margin: give 1 or more, or 0 for no detection", margin);
}

std::string a_metric(const std::string& text) {
  const auto metric = policy::Metric::parse(text);
  return metric ? std::string{} : metric.error().text;
}

std::string some_interruptions(std::int64_t count) {
  if (count >= 0) return {};
  return fmt::format("{} is no number of interruptions: give 0 or more", count);
}

std::string an_interference(double times) {
  if (times >= 1 && times <= 1000) return {};
  return fmt::format("{}: two at once are not that much slower: give 1 (not at all) to 1000", times);
}

// 0 stands for the cores of the machine; with_cores replaces it.
std::string a_core_count(std::int64_t count) {
  if (count >= 0 && count <= most_cores) return {};
  return fmt::format("{} is no number of cores: give 1 or more, or 0 for as many as the machine has", count);
}

// The type of a key: its place in Settings and its check. A switch needs no check.
struct Text {
  std::string Settings::*value;
  CheckText check;
};
struct Number {
  double Settings::*value;
  CheckNumber check;
};
struct Count {
  std::int64_t Settings::*value;
  CheckCount check;
};
struct Switch {
  bool Settings::*value;
};

// One key of hocket.toml. The table of keys below is the only list of them: reading, checking, printing and the
// trace's header all use it.
struct Key {
  const char* table;
  const char* name;
  std::variant<Text, Number, Count, Switch> type;
  const char* help;  // meaning; each line is a line of the printed file
  // The value that stands for hocket's behaviour before this key existed. A replay uses it for traces without the
  // key; if it is absent, the default stands for that behaviour. Set it here when you change a default, or when the
  // default of a new key changes decisions.
  std::optional<event::Value> formerly{};
};

const std::array keys{
    Key{"daemon", "dir", Text{&Settings::dir, any_text},
        "runtime directory: socket, lock, log, traces. Empty: $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket,\n"
        "else /tmp/hocket-<uid>"},
    Key{"daemon", "trace", Text{&Settings::trace, any_text}, "file of the trace. Empty: a new one in <dir>/traces"},
    Key{"daemon", "log_level", Text{&Settings::log_level, a_level},
        "what <dir>/hocketd.log holds: error, warning, info or debug, each with those before it"},
    Key{"daemon", "exit_when_idle_s", Number{&Settings::exit_when_idle_s, not_negative},
        "seconds without any member connected after which the daemon ends; 0: never"},
    Key{"coordinator", "policy", Text{&Settings::policy, a_policy},
        "names joined by '+', at most one of each kind. Who may use a target: cost (the cheapest by what was measured, "
        "and\n"
        "nobody later than uncoordinated), fcfs (one application at a time, first come, first served), interfere "
        "(nobody\n"
        "waits), interrupt (who comes second goes first), dynamic (whichever\n"
        "makes 'metric' the least), set-10 (sets by the order of magnitude of the period). Against interference:\n"
        "phase-shift, period-coupling. Who gets idle cores: fair, speedup, io-aware, predictive. \"none\": interfere\n"
        "alone. hocketd --print-policies lists all"},
    Key{"coordinator", "policy_file", Text{&Settings::policy_file, any_text},
        "file of a policy in Python (docs/write-a-policy.md), in force in the place of its kind; empty: none"},
    Key{"coordinator", "policy_file_sha256", Text{&Settings::policy_file_sha256, any_text},
        "SHA-256 that this file must have, hexadecimal; empty: any. The header of a trace tells it, for replays"},
    Key{"coordinator", "lease_s", Number{&Settings::lease_s, positive},
        "seconds after which a grant that is not renewed is taken back: how long a stopped application\n"
        "may hold the others up"},
    Key{"coordinator", "linger_s", Number{&Settings::linger_s, not_negative},
        "seconds for which a target stays with an application after an operation, so that the operations\n"
        "of one I/O phase are not pulled apart; 0: not at all"},
    Key{"coordinator", "turn_s", Number{&Settings::turn_s, not_negative},
        "seconds that the first in the queue waits at most for an application that does one operation after\n"
        "another; then it comes before the next of them",
        a_year_s},
    Key{"coordinator", "metric", Text{&Settings::metric, a_metric},
        "what policy dynamic makes the least: cpu-time, io-time, interference, makespan, or a formula over what each\n"
        "application has of its I/O phase: processes, io_time (waits included), alone, end, e.g.\n"
        "\"sum(processes*io_time)\", which is cpu-time"},
    Key{"coordinator", "most_interruptions", Count{&Settings::most_interruptions, some_interruptions},
        "so often an application is interrupted at most in one I/O phase"},
    Key{"coordinator", "interference", Number{&Settings::interference, an_interference},
        "how many times slower two become beside each other that demand all of a target, until that is measured"},
    Key{"coordinator", "keep_alive_s", Number{&Settings::keep_alive_s, positive},
        "seconds after which who waits is told again that it does (less than HOCKET_ANSWER_S of the jobs)"},
    Key{"coordinator", "cores", Count{&Settings::cores, a_core_count},
        "cores that applications may be resized to use: no resize makes the processes of all applications more\n"
        "than this; 0: as many as the machine has"},
    Key{"coordinator", "join_limit_s", Number{&Settings::join_limit_s, positive},
        "seconds within which all processes that hocketd starts to join an application must have initialised MPI;\n"
        "after that they are ended and the resize is given up"},
    Key{"coordinator", "nodes", Text{&Settings::nodes, some_nodes},
        "where the cores are, as \"NAME:CORES NAME:CORES …\"; empty: on this machine, as many as 'cores' says"},
    Key{"coordinator", "most_slowdown", Number{&Settings::most_slowdown, a_share_or_of_policy},
        "how much slower than uncoordinated an application may get, as a part of its time, and 0.1 s: one that would\n"
        "become slower is granted at once, beside who holds the target; 0: no bound; -1: 0.05 under cost, else no "
        "bound"},
    Key{"coordinator", "learnt_hold", Switch{&Settings::learnt_hold},
        "true: a target stays with an application for as long as its next access usually takes to come, instead of\n"
        "linger_s; cost does so anyway"},
    Key{"coordinator", "small_access_s", Number{&Settings::small_access_s, not_negative},
        "an access that is expected to take no longer than this is granted at once, whoever holds the target; 0: "
        "none.\n"
        "cost compares what waiting costs instead"},
    Key{"coordinator", "uncertainty_s", Number{&Settings::uncertainty_s, a_time_or_observed},
        "seconds by which a predicted I/O phase may come earlier or later; -1: two standard deviations of what was\n"
        "observed"},
    Key{"coordinator", "reconfiguration_s", Number{&Settings::reconfiguration_s, not_negative},
        "seconds that an application is taken to stand still in a resize, while it has made none"},
    Key{"coordinator", "objective", Text{&Settings::objective, an_objective},
        "what is to become the most when cores are shared out: \"flops\" or \"iterations\" (of all applications)"},
    Key{"coordinator", "least_gain", Number{&Settings::least_gain, a_share},
        "cores are shared out anew only where the objective is predicted to gain at least this share"},
    Key{"coordinator", "probe", Switch{&Settings::probe},
        "true: an application of which no times are known is measured at other sizes when it starts, where a policy "
        "for\n"
        "cores is in force"},
    Key{"coordinator", "profiles", Text{&Settings::profiles, any_text},
        "file of the measured profiles (hocket profile). Empty: $XDG_DATA_HOME/hocket/profiles.db, else\n"
        "~/.local/share/hocket/profiles.db; \"none\": no profiles are used"},
    Key{"coordinator", "slow_server", Number{&Settings::slow_server, a_margin},
        "an I/O server comes out of the map when an operation takes it more than this times n/(n-1) as long as its\n"
        "peers, with n servers in the map (where its removal begins to pay); 0: none is taken for slow",
        0.0},
    Key{"coordinator", "slow_server_hold_off_s", Number{&Settings::slow_server_hold_off_s, positive},
        "seconds after which such a server is tried again; they double each time that it is slow again"},
    Key{"coordinator", "tell_waits", Switch{&Settings::tell_waits},
        "true: each wait for another application is a decision (hocket explain), also under policies that give no "
        "reasons,\n"
        "once for each I/O phase and holder",
        false},
};

// Returns the key, or nullptr. The search is linear, as the keys are few.
const Key* find_key(std::string_view table, std::string_view name) {
  for (const Key& key : keys) {
    if (key.table == table && key.name == name) return &key;
  }
  return nullptr;
}

// Returns the name that set() accepts and that errors show.
std::string full_name(const Key& key) { return fmt::format("{}.{}", key.table, key.name); }

// Returns what the key expects, in the words of error messages.
const char* type_name(const Key& key) {
  constexpr std::array names{"a text in double quotes", "a number", "a whole number", "true or false"};
  return names.at(key.type.index());
}

// The functions `assign` check a value and store it. They return what is wrong, or "".
std::string assign(Settings& settings, const Key& key, const std::string& value) {
  const auto* text = std::get_if<Text>(&key.type);
  if (text == nullptr) return fmt::format("{} must be {}, not the text '{}'", full_name(key), type_name(key), value);
  if (std::string wrong = text->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*text->value = value;
  return {};
}

std::string assign(Settings& settings, const Key& key, double value) {
  const auto* number = std::get_if<Number>(&key.type);
  if (number == nullptr) return fmt::format("{} must be {}, not {}", full_name(key), type_name(key), value);
  if (std::string wrong = number->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*number->value = value;
  return {};
}

std::string assign(Settings& settings, const Key& key, bool value) {
  const auto* is_switch = std::get_if<Switch>(&key.type);
  if (is_switch == nullptr) return fmt::format("{} must be {}, not {}", full_name(key), type_name(key), value);
  settings.*is_switch->value = value;
  return {};
}

// A whole number is also a number, so keys of either type accept it.
std::string assign(Settings& settings, const Key& key, std::int64_t value) {
  const auto* count = std::get_if<Count>(&key.type);
  if (count == nullptr) return assign(settings, key, static_cast<double>(value));
  if (std::string wrong = count->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*count->value = value;
  return {};
}

std::string assign(Settings& settings, const Key& key, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return assign(settings, key, *text);
  if (const auto whole = node.value_exact<std::int64_t>()) return assign(settings, key, *whole);
  if (const auto truth = node.value_exact<bool>()) return assign(settings, key, *truth);
  if (node.is_number()) return assign(settings, key, node.value_or(std::nan("")));
  return fmt::format("{} must be {}", full_name(key), type_name(key));
}

// Suggests the nearest key. Names are unique over all tables, so this also finds a key in the wrong table.
std::string unknown_key(std::string_view table, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(keys.size());
  for (const Key& key : keys) names.emplace_back(key.name);
  const std::string_view known = nearest(name, names);
  const Key& meant = *std::ranges::find(keys, known, [](const Key& key) { return std::string_view{key.name}; });
  const std::string unknown = table.empty() ? std::string{name} : fmt::format("{}.{}", table, name);
  return fmt::format("unknown key '{}': did you mean '{}'?", unknown, full_name(meant));
}

// Suggests the nearest table.
std::string unknown_table(std::string_view name) {
  return fmt::format("unknown table [{}]: did you mean [{}]?", name, nearest(name, {"daemon", "coordinator"}));
}

// Sets one key of one table from a node of the file.
std::string apply(Settings& settings, std::string_view table, std::string_view name, const toml::node& node) {
  const Key* key = find_key(table, name);
  return key == nullptr ? unknown_key(table, name) : assign(settings, *key, node);
}

// Returns the error with "FILE:LINE: " in front, which editors recognise.
Error at(const std::string& path, const toml::source_region& where, const std::string& what) {
  return Error{fmt::format("{}:{}: {}", path, where.begin.line, what)};
}

// Sets the keys of one table, up to the first error.
Status read_table(const std::string& path, std::string_view name, const toml::table& table, Settings& settings) {
  for (const auto& [key, node] : table) {
    const std::string wrong = apply(settings, name, key.str(), node);
    if (!wrong.empty()) return at(path, key.source(), wrong);
  }
  return success();
}

std::string assign(Settings& settings, const Key& key, const event::Value& value) {
  return std::visit([&](const auto& v) { return assign(settings, key, v); }, value);
}

// Visits the keys of [coordinator]; those of [daemon] do not change decisions, and no trace has them.
template <class Visit>
void coordinator_keys(Visit&& visit) {
  for (const Key& key : keys) {
    if (std::string_view{key.table} == "coordinator") visit(key);
  }
}

}  // namespace

Status read_file(const std::string& path, Settings& settings) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + " is a directory, no hocket.toml"};
  if (!std::filesystem::exists(path, ignored)) {
    return Error{path + ": there is no such file; hocketd --print-config prints one to start from"};
  }
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return at(path, error.source(), std::string{error.description()});
  }
  // A key outside a table is reported before an unknown table: its author forgot the table's header.
  for (const auto& [name, node] : file) {
    const toml::table* table = node.as_table();
    const bool known = name.str() == "daemon" || name.str() == "coordinator";
    if (known && table == nullptr) {
      return at(path, name.source(),
                fmt::format("'{0}' is the name of a table: write [{0}] alone in a line", name.str()));
    }
    if (table == nullptr) return at(path, name.source(), unknown_key("", name.str()));
    if (!known) return at(path, name.source(), unknown_table(name.str()));
    if (const Status read = read_table(path, name.str(), *table, settings); !read) return read;
  }
  return success();
}

Status set(Settings& settings, const std::string& key, const event::Value& value, const std::string& option) {
  const std::size_t dot = std::min(key.find('.'), key.size());
  const std::string table = key.substr(0, dot);
  const std::string name = key.substr(std::min(dot + 1, key.size()));
  const Key* known = find_key(table, name);
  const std::string wrong = known == nullptr ? unknown_key(table, name) : assign(settings, *known, value);
  if (wrong.empty()) return success();
  return Error{option + ": " + wrong};
}

Settings with_cores(Settings settings) {
  if (settings.cores != 0) return settings;
  const auto nodes = parse_nodes(settings.nodes);
  for (const model::Node& node : nodes.value()) settings.cores += node.cores;
  if (settings.cores != 0) return settings;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // A batch system or taskset may allow fewer cores than the machine has.
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  settings.cores = known ? CPU_COUNT(&allowed) : std::thread::hardware_concurrency();
  settings.cores = std::max<std::int64_t>(1, settings.cores);
  return settings;
}

std::string print(const Settings& settings) {
  std::string out = "# hocket.toml: the settings of hocketd, with the values in force. Times are in seconds.\n";
  const char* table = "";
  for (const Key& key : keys) {
    if (std::string_view{table} != key.table) out += fmt::format("\n[{}]\n", key.table);
    table = key.table;
    std::string help = key.help;
    // Line ends inside a meaning become further comment lines.
    for (std::size_t i = 0; (i = help.find('\n', i)) != std::string::npos; i += 3) help.replace(i, 1, "\n# ");
    out += fmt::format("# {}\n{} = ", help, key.name);
    if (const auto* text = std::get_if<Text>(&key.type)) {
      std::ostringstream quoted;
      quoted << toml::value<std::string>{settings.*text->value};
      out += quoted.str() + "\n";
    } else if (const auto* count = std::get_if<Count>(&key.type)) {
      out += fmt::format("{}\n", settings.*count->value);
    } else if (const auto* number = std::get_if<Number>(&key.type)) {
      out += fmt::format("{}\n", settings.*number->value);
    } else {
      out += fmt::format("{}\n", settings.*std::get<Switch>(key.type).value);
    }
  }
  return out;
}

coordinator::Settings for_coordinator(const Settings& settings) {
  // The values are in the order of the members of coordinator::Settings.
  const bool flops = settings.objective == "flops";
  return {policy::parse_combination(settings.policy).value(),
          from_s(settings.lease_s),
          from_s(settings.linger_s),
          from_s(settings.turn_s),
          from_s(settings.keep_alive_s),
          settings.cores,
          from_s(settings.join_limit_s),
          {from_s(settings.uncertainty_s), from_s(settings.reconfiguration_s),
           flops ? policy::Objective::flops : policy::Objective::iterations, settings.least_gain},
          {policy::Metric::parse(settings.metric).value(), settings.most_interruptions, from_s(settings.turn_s),
           settings.interference},
          settings.most_slowdown,
          settings.probe,
          parse_nodes(settings.nodes).value(),
          {},
          settings.slow_server,
          from_s(settings.slow_server_hold_off_s),
          settings.learnt_hold,
          from_s(settings.small_access_s),
          settings.tell_waits};
}

event::Properties for_trace(const Settings& settings) {
  event::Properties header;
  coordinator_keys([&](const Key& key) {
    std::visit([&](const auto& type) { header.emplace_back(key.name, settings.*type.value); }, key.type);
  });
  return header;
}

Result<Settings> from_trace(const event::Properties& header) {
  Settings settings;
  std::string wrong;
  coordinator_keys([&](const Key& key) {
    const event::Value* value = event::find(header, key.name);
    // Traces without the key were made by an older hocket.
    if (value == nullptr && key.formerly) value = &*key.formerly;
    if (value == nullptr || !wrong.empty()) return;
    wrong = assign(settings, key, *value);
  });
  if (!wrong.empty()) return Error{"the header's settings cannot be used for a replay: " + wrong};
  return settings;
}

}  // namespace hocket::config
