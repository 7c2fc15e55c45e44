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
#include <vector>

#include "base/nearest.hpp"
#include "config/target_policies.hpp"
#include "event/properties.hpp"
#include "file_system/target_name.hpp"
#include "metrics/address.hpp"
#include "policy/combination.hpp"
#include "request_scheduler/algorithm.hpp"

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

// Numbers of applications, as "APP=NUMBER APP=NUMBER …", each from 1 to `most`. A name may contain '=': the last one
// counts.
struct ApplicationNumbers {
  std::string_view noun;  // of a number, and the word that stands for it, in errors
  std::string_view word;
  std::int64_t most;

  // The error says what is wrong.
  Result<std::map<std::string, std::int64_t, std::less<>>> parse(const std::string& text) const {
    std::map<std::string, std::int64_t, std::less<>> numbers;
    std::istringstream words{text};
    for (std::string one; words >> one;) {
      const std::size_t sign = one.rfind('=');
      const char* const end = one.data() + one.size();
      std::int64_t number = 0;
      const bool is_number = sign != std::string::npos && sign > 0 &&
                             std::from_chars(one.data() + sign + 1, end, number).ptr == end && sign + 1 < one.size();
      if (!is_number || number < 1 || number > most)
        return Error{fmt::format("'{}' is no {} of an application: write APP={}, with a {} of 1 to {}", one, noun, word,
                                 noun, most)};
      if (!numbers.emplace(one.substr(0, sign), number).second)
        return Error{fmt::format("application '{}' is named twice", one.substr(0, sign))};
    }
    return numbers;
  }

  // Returns what is wrong with the text; "" if nothing is.
  std::string wrong_with(const std::string& text) const {
    const auto numbers = parse(text);
    return numbers ? std::string{} : numbers.error().text;
  }
};

constexpr ApplicationNumbers size_limits{"size limit", "PROCESSES", most_cores};
constexpr ApplicationNumbers weights{"weight", "WEIGHT", event::most_application_weight};

std::string some_size_limits(const std::string& text) { return size_limits.wrong_with(text); }
std::string some_weights(const std::string& text) { return weights.wrong_with(text); }

std::string some_target_policies(const std::string& text) {
  const auto targets = parse_target_policies(text);
  return targets ? std::string{} : targets.error().text;
}

std::string some_target_names(const std::string& text) {
  const auto names = file_system::parse_target_names(text);
  return names ? std::string{} : names.error().text;
}

// A trace has the names, because a path may lead elsewhere where it is replayed.
std::string resolved_targets(const std::string& text) { return text_of(parse_target_policies(text).value()); }

// The last hint is for a slip: "metric" is another key.
std::string a_metrics_address(const std::string& text) {
  if (text.empty()) return {};
  const auto address = metrics::parse_address(text);
  return address ? std::string{} : address.error().text + " (what policies minimise is coordinator.metric)";
}

std::string a_scheduler(const std::string& name) {
  return name.empty() ? std::string{} : one_of("request scheduler", name, request_scheduler::algorithm_names());
}

// A daemon has another working directory than whoever has started it.
std::string a_full_path(const std::string& path) {
  return path.empty() || path.front() == '/' ? std::string{} : fmt::format("'{}' is no full path", path);
}

std::string a_key(const std::string& key) { return key == "munge" ? std::string{} : a_full_path(key); }

std::string some_users(const std::string& word) {
  return word == "own" || word == "all" ? std::string{} : fmt::format("'{}' is unknown: give own or all", word);
}

std::string an_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  int port = 0;
  const char* const end = text.data() + text.size();
  const bool good = colon != std::string::npos && colon > 0 && text.find_first_of(" \t\r\n") == std::string::npos &&
                    std::from_chars(text.data() + colon + 1, end, port).ptr == end && port > 0 && port < 65536;
  return good ? std::string{} : fmt::format("'{}' is no address: write HOST:PORT, with a port of 1 to 65535", text);
}

std::string a_host(const std::string& text) {
  const bool good = text.find_first_of(" \t\r\n[]#@/") == std::string::npos && text != "0.0.0.0" && text != "::";
  return good ? std::string{} : fmt::format("'{}' is no host by which other nodes reach this one", text);
}

std::string some_addresses(const std::string& text) {
  std::istringstream words{text};
  std::string wrong;
  for (std::string word; wrong.empty() && words >> word;) wrong = an_address(word);
  return wrong;
}

constexpr std::int64_t most_of_machine = 1'000'000;

std::string a_level(const std::string& name) { return one_of("level", name, {"error", "warning", "info", "debug"}); }

std::string not_negative(double seconds) {
  if (seconds >= 0 && seconds <= a_year_s) return {};
  return fmt::format("{} s is no time: give 0 or more, and at most a year", seconds);
}

std::string positive(double seconds) {
  if (seconds >= 0.001 && seconds <= a_year_s) return {};
  return fmt::format("{} s is no time for this: give at least 0.001, and at most a year", seconds);
}

std::string some_hours(double hours) {
  if (hours >= 0 && hours * 3600 <= a_year_s) return {};
  return fmt::format("{} is no number of hours: give 0 or more, and at most a year", hours);
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

// The value -1 stands for no bound.
std::string a_loss(double share) { return share == -1 ? std::string{} : a_share(share); }

std::string a_machine_size(std::int64_t count) {
  if (count >= 0 && count <= most_of_machine) return {};
  return fmt::format("{} is out of range: give 1 to {}, or 0 for what there is", count, most_of_machine);
}

std::string some_interruptions(std::int64_t count) {
  if (count >= 0) return {};
  return fmt::format("{} is no number of interruptions: give 0 or more", count);
}

std::string an_interference(double times) {
  if (times >= 1 && times <= 1000) return {};
  return fmt::format("{} is out of range: give 1 (no slowdown) to 1000", times);
}

constexpr std::int64_t most_mib = std::int64_t{1} << 40;

std::string a_part_size(std::int64_t mib) {
  if (mib >= 0 && mib <= most_mib) return {};
  return fmt::format("{} is no size in MiB: give 1 or more, or 0 for one file of any size", mib);
}

std::string a_trace_size(std::int64_t mib) {
  if (mib >= 0 && mib <= most_mib) return {};
  return fmt::format("{} is no size in MiB: give 1 or more, or 0 for no limit", mib);
}

// 0 stands for the cores of the machine; with_cores replaces it.
std::string a_core_count(std::int64_t count) {
  if (count >= 0 && count <= most_cores) return {};
  return fmt::format("{} is no number of cores: give 1 or more, or 0 for as many as the machine has", count);
}

// The type of a key: its place in DaemonSettings and its check. A switch needs no check.
struct Text {
  std::string DaemonSettings::*value;
  CheckText check;
  // Returns the value to store for one that has passed the check; nullptr: the same.
  std::string (*resolve)(const std::string&) = nullptr;
};
struct Number {
  double DaemonSettings::*value;
  CheckNumber check;
};
struct Count {
  std::int64_t DaemonSettings::*value;
  CheckCount check;
};
struct Switch {
  bool DaemonSettings::*value;
};

// Holds a default that a key had up to a version of the trace, that one included.
struct Former {
  std::int64_t until;
  event::Value value;
};
using Formerly = std::vector<Former>;

// One key of hocket.toml. The table of keys below is the only list of them: reading, checking, printing and the
// trace's header all use it.
struct Key {
  std::string_view table;
  const char* name;
  std::variant<Text, Number, Count, Switch> type;
  const char* help;  // meaning; each line is a line of the printed file
  // The defaults of earlier versions of the trace (trace/writer.hpp), ascending. A replay uses them for traces without
  // the key: each is the value that stands for hocket's behaviour then. Add one, for the last version before yours,
  // when you change a default, or when the default of a new key changes decisions.
  Formerly formerly{};

  // Returns the default of that version; nullptr: that of DaemonSettings.
  const event::Value* default_in(std::int64_t version) const {
    const auto found = std::ranges::find_if(formerly, [&](const Former& one) { return version <= one.until; });
    return found == formerly.end() ? nullptr : &found->value;
  }
};

const std::array keys{
    Key{"daemon", "dir", Text{&DaemonSettings::dir, any_text},
        "runtime directory: socket, lock, log, traces. Empty: $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket,\n"
        "else /tmp/hocket-<uid>"},
    Key{"daemon", "trace", Text{&DaemonSettings::trace, any_text},
        "file of the trace. Empty: a new one in <dir>/traces"},
    Key{"daemon", "trace_part_mib", Count{&DaemonSettings::trace_part_mib, a_part_size},
        "size in MiB at which the trace NAME.jsonl continues in NAME.1.jsonl, NAME.2.jsonl and so on; 0: never"},
    Key{"daemon", "trace_most_mib", Count{&DaemonSettings::trace_most_mib, a_trace_size},
        "size in MiB of all parts of the trace, above which the oldest are removed; 0: no limit. A trace that has "
        "lost\n"
        "its first part does not replay: hocketd --replay names the part. Give at least twice trace_part_mib"},
    Key{"daemon", "trace_part_h", Number{&DaemonSettings::trace_part_h, some_hours},
        "hours after which the trace continues in another file, too, at the next event; 0: never"},
    Key{"daemon", "trace_compress", Switch{&DaemonSettings::trace_compress},
        "true: a part of the trace that has ended is compressed (NAME.jsonl.gz); hocket reads it as before"},
    Key{"daemon", "log_level", Text{&DaemonSettings::log_level, a_level},
        "least severity of a line in <dir>/hocketd.log: error, warning, info or debug"},
    Key{"daemon", "target_names", Text{&DaemonSettings::target_names, some_target_names},
        "names of targets, as \"PATH=NAME PATH=NAME …\", in place of those that hocket finds "
        "(docs/design/targets.md).\n"
        "PATH lies on the file system, on each node that has it, and passes through no symbolic link; or it is the\n"
        "name that hocket has found. hocket run hands this on (HOCKET_TARGET_NAMES)"},
    Key{"daemon", "exit_when_idle_s", Number{&DaemonSettings::exit_when_idle_s, not_negative},
        "the daemon exits after this many seconds without a connected member; 0: never"},
    Key{"daemon", "users", Text{&DaemonSettings::users, some_users},
        "whose programs take part: \"own\", those of hocketd's user, and root's; \"all\", those of all users of the\n"
        "node, who find a daemon at /run/hocket by themselves (docs/cluster.md)"},
    Key{"daemon", "operators", Text{&DaemonSettings::operators, any_text},
        "group whose members may steer and watch the programs of all users, as hocketd's user and root may; empty:\n"
        "none. Others steer and watch their own"},
    Key{"daemon", "metrics", Text{&DaemonSettings::metrics, a_metrics_address},
        "address at which /metrics is served for Prometheus (docs/operate.md): HOST:PORT with a numeric address, e.g.\n"
        "\"127.0.0.1:9321\", or \"unix:/PATH\" for this user alone. There is no password: other users of the node can\n"
        "read a port. Empty: none"},
    Key{"cluster", "listen", Text{&DaemonSettings::listen, an_address},
        "address at which hocketd --leader takes the agents of other nodes, HOST:PORT"},
    Key{"cluster", "leaders", Text{&DaemonSettings::leaders, some_addresses},
        "addresses of leaders, \"HOST:PORT HOST:PORT …\" or [\"HOST:PORT\", …]: hocketd --agent uses the first one\n"
        "that answers; a leader that does not find itself at the first place only grants turns"},
    Key{"cluster", "key", Text{&DaemonSettings::key, a_key},
        "file of the key that all nodes of the cluster have, and nobody else may read (hocketd --make-key FILE); or\n"
        "\"munge\": MUNGE says who the other end is, which must run as the same user, or as root"},
    Key{"cluster", "munge_socket", Text{&DaemonSettings::munge_socket, a_full_path},
        "socket of munged, for key = \"munge\"; empty: the one with which libmunge was built"},
    Key{"cluster", "address", Text{&DaemonSettings::address, a_host},
        "host by which other nodes reach the I/O servers of this one, e.g. that of a faster network; empty: the\n"
        "address that the link between agent and leader has here"},
    Key{"coordinator", "policy", Text{&DaemonSettings::policy, a_policy},
        "policy names joined by '+', at most one of each kind: for access to targets, against interference, for idle\n"
        "cores, and for I/O servers. \"none\": interfere alone. hocketd --print-policies lists all, and what each "
        "does"},
    Key{"coordinator", "policy_file", Text{&DaemonSettings::policy_file, any_text},
        "file of a policy in Python (docs/write-a-policy.md), which replaces the policy of its kind; empty: none. "
        "Only\n"
        "root and the user of hocketd may be able to write it and the directories on its path"},
    Key{"coordinator", "policy_file_sha256", Text{&DaemonSettings::policy_file_sha256, any_text},
        "required SHA-256 of this file, hexadecimal; empty: any. It is compared before the file runs. The header of a\n"
        "trace records it for replays"},
    Key{"coordinator", "lease_s", Number{&DaemonSettings::lease_s, positive},
        "seconds after which the coordinator revokes a grant that is not renewed. A stopped application blocks\n"
        "others no longer than this"},
    Key{"coordinator", "linger_s", Number{&DaemonSettings::linger_s, not_negative},
        "seconds for which a target stays granted to an application after an operation (idle hold), so that the\n"
        "operations of one I/O phase stay together; 0: none"},
    Key{"coordinator", "turn_s", Number{&DaemonSettings::turn_s, not_negative},
        "seconds for which an application may begin further operations while another one waits (time slice); then\n"
        "the first in the queue comes next",
        Formerly{{1, a_year_s}}},
    Key{"coordinator", "metric", Text{&DaemonSettings::metric, a_metric},
        "what the policies cost and dynamic minimise over the applications that want a target: cpu-time, io-time,\n"
        "interference, makespan, or a formula of processes, io_time (waits included), alone and end of the I/O\n"
        "phase of each application, its flops (FLOP/s) and its run_time (s),\n"
        "e.g. \"sum(processes*io_time)\", which is cpu-time"},
    Key{"coordinator", "most_interruptions", Count{&DaemonSettings::most_interruptions, some_interruptions},
        "most preemptions of an application in one I/O phase"},
    Key{"coordinator", "interference", Number{&DaemonSettings::interference, an_interference},
        "how many times longer each of two applications takes that use all of a target at once; assumed until\n"
        "measured"},
    Key{"coordinator", "keep_alive_s", Number{&DaemonSettings::keep_alive_s, positive},
        "seconds between two messages that let a waiting application know that hocketd still runs (less than\n"
        "HOCKET_ANSWER_S of the jobs)"},
    Key{"coordinator", "cores", Count{&DaemonSettings::cores, a_core_count},
        "cores for resizes: no resize makes the processes of all applications together more than this; 0: as many\n"
        "as the machine has, and those of the nodes whose agents have joined"},
    Key{"coordinator", "join_limit_s", Number{&DaemonSettings::join_limit_s, positive},
        "seconds within which all processes that hocketd starts to join an application must have initialised MPI;\n"
        "after that hocketd ends them and the application gives the resize up"},
    Key{"coordinator", "nodes", Text{&DaemonSettings::nodes, some_nodes},
        "where the cores are, as \"NAME:CORES NAME:CORES …\"; empty: all on this machine, as many as 'cores' says,\n"
        "or each node has what its agent tells"},
    Key{"coordinator", "most_slowdown", Number{&DaemonSettings::most_slowdown, a_share_or_of_policy},
        "largest slowdown of an application against uncoordinated, as a fraction of its time, plus 0.1 s. An\n"
        "application that would exceed it is granted at once, beside the holder; 0: no bound; -1: 0.05 under cost,\n"
        "else no bound"},
    Key{"coordinator", "learnt_hold", Switch{&DaemonSettings::learnt_hold},
        "true: the idle hold lasts as long as the application's next access usually takes to come, instead of\n"
        "linger_s; cost does so anyway"},
    Key{"coordinator", "small_access_s", Number{&DaemonSettings::small_access_s, not_negative},
        "an access that is expected to take no longer than this many seconds is granted at once, even if another\n"
        "application holds the target; 0: none. The policy cost compares the costs of waiting instead"},
    Key{"coordinator", "delegate_after_s", Number{&DaemonSettings::delegate_after_s, not_negative},
        "seconds for which an application must have been alone on a target before it is delegated: from then on it\n"
        "accesses the target without asking, until another application asks; 0: targets are never delegated"},
    Key{"coordinator", "uncertainty_s", Number{&DaemonSettings::uncertainty_s, a_time_or_observed},
        "seconds by which a predicted I/O phase may come earlier or later; -1: two standard deviations of what was\n"
        "observed"},
    Key{"coordinator", "reconfiguration_s", Number{&DaemonSettings::reconfiguration_s, not_negative},
        "seconds for which a resize is assumed to stop an application, until one was measured"},
    Key{"coordinator", "objective", Text{&DaemonSettings::objective, an_objective},
        "what the policies for cores maximise, summed over all applications: \"flops\" or \"iterations\""},
    Key{"coordinator", "least_gain", Number{&DaemonSettings::least_gain, a_share},
        "cores are shared out anew only if the objective is predicted to gain at least this fraction"},
    Key{"coordinator", "probe", Switch{&DaemonSettings::probe},
        "true: under a policy for cores, an application without known times is measured at other sizes when it\n"
        "starts"},
    Key{"coordinator", "profiles", Text{&DaemonSettings::profiles, any_text},
        "file of the measured profiles (hocket profile). Empty: $XDG_DATA_HOME/hocket/profiles.db, else\n"
        "~/.local/share/hocket/profiles.db; \"none\": no profiles are used"},
    Key{"coordinator", "slow_server", Number{&DaemonSettings::slow_server, a_margin},
        "an I/O server leaves the map if an operation takes it more than this times n/(n-1) as long as its peers,\n"
        "with n servers in the map (there its removal begins to pay); 0: no server is taken for slow",
        Formerly{{1, 0.0}}},
    Key{"coordinator", "slow_server_hold_off_s", Number{&DaemonSettings::slow_server_hold_off_s, positive},
        "seconds after which such a server is tried again; doubled each time that it is slow again"},
    Key{"coordinator", "tell_waits", Switch{&DaemonSettings::tell_waits},
        "true: each wait for another application is a decision (hocket explain), once for each I/O phase and\n"
        "holder, also under policies that give no reasons",
        Formerly{{1, false}}},
    Key{"coordinator", "target_policies",
        Text{&DaemonSettings::target_policies, some_target_policies, resolved_targets},
        "policies for access to single targets, as \"TARGET=POLICY TARGET=POLICY …\": the operator's, as by hocket\n"
        "policy set --target. TARGET is a path on a file system, its name or device (\"dev:8:1\"), or a name that\n"
        "applications give (hocket_target). With a '?' after POLICY, applications may switch to another one there"},
    Key{"coordinator", "request_scheduler", Text{&DaemonSettings::request_scheduler, a_scheduler},
        "the order of accesses that wait in I/O servers, e.g. \"job-fair\" (docs/forward.md); empty: the one\n"
        "with which each server was started. An operator's choice for a server (hocket server start --scheduler,\n"
        "hocket servers scheduler) goes first, then that of a policy for I/O servers"},
    Key{"coordinator", "application_weights", Text{&DaemonSettings::application_weights, some_weights},
        "weights of applications under the scheduler wfq, as \"APP=WEIGHT APP=WEIGHT …\", 1 to 1000; 1 for\n"
        "others. APP is the name that a run asks for, so its second run of that time has the weight, too. hocket\n"
        "servers weight and policies for I/O servers go first"},
    Key{"coordinator", "size_limits", Text{&DaemonSettings::size_limits, some_size_limits},
        "most processes that policies for cores give an application, as \"APP=PROCESSES APP=PROCESSES …\"; those\n"
        "that are not named may get all cores. hocket resize is not bound by it"},
    Key{"arbitration", "direct", Switch{&DaemonSettings::direct},
        "the rules of the policies zero, one, static, size, process, mckp and oracle, which give each application of\n"
        "hocket forward a number of I/O servers. true: it may be 0, and the application then accesses its files\n"
        "directly"},
    Key{"arbitration", "divides_evenly", Switch{&DaemonSettings::divides_evenly},
        "true: the I/O servers of an application divide its nodes evenly"},
    Key{"arbitration", "most_loss", Number{&DaemonSettings::most_loss, a_loss},
        "under mckp no application loses more than this part of its bandwidth under static; -1: any. If nothing\n"
        "satisfies that, static decides"},
    Key{"arbitration", "shared_server", Switch{&DaemonSettings::shared_server},
        "true: mckp may let applications share one server, where that is better"},
    Key{"arbitration", "system_nodes", Count{&DaemonSettings::system_nodes, a_machine_size},
        "nodes of the whole machine, for static; 0: those of the applications that forward"},
    Key{"arbitration", "system_servers", Count{&DaemonSettings::system_servers, a_machine_size},
        "I/O servers of the whole machine, for static; 0: those that are up"},
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
std::string assign(DaemonSettings& settings, const Key& key, const std::string& value) {
  const auto* text = std::get_if<Text>(&key.type);
  if (text == nullptr) return fmt::format("{} must be {}, not the text '{}'", full_name(key), type_name(key), value);
  if (std::string wrong = text->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*text->value = text->resolve == nullptr ? value : text->resolve(value);
  return {};
}

std::string assign(DaemonSettings& settings, const Key& key, double value) {
  const auto* number = std::get_if<Number>(&key.type);
  if (number == nullptr) return fmt::format("{} must be {}, not {}", full_name(key), type_name(key), value);
  if (std::string wrong = number->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*number->value = value;
  return {};
}

std::string assign(DaemonSettings& settings, const Key& key, bool value) {
  const auto* is_switch = std::get_if<Switch>(&key.type);
  if (is_switch == nullptr) return fmt::format("{} must be {}, not {}", full_name(key), type_name(key), value);
  settings.*is_switch->value = value;
  return {};
}

// A whole number is also a number, so keys of either type accept it.
std::string assign(DaemonSettings& settings, const Key& key, std::int64_t value) {
  const auto* count = std::get_if<Count>(&key.type);
  if (count == nullptr) return assign(settings, key, static_cast<double>(value));
  if (std::string wrong = count->check(value); !wrong.empty()) return fmt::format("{}: {}", full_name(key), wrong);
  settings.*count->value = value;
  return {};
}

// Texts in the file that may be written as a list of their words.
bool is_list(const Key& key) {
  const auto* text = std::get_if<Text>(&key.type);
  return text != nullptr && text->check == some_addresses;
}

std::string assign(DaemonSettings& settings, const Key& key, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return assign(settings, key, *text);
  if (const auto whole = node.value_exact<std::int64_t>()) return assign(settings, key, *whole);
  if (const auto truth = node.value_exact<bool>()) return assign(settings, key, *truth);
  if (const toml::array* texts = node.as_array();
      texts != nullptr && is_list(key) && texts->is_homogeneous<std::string>()) {
    std::string words;
    for (const auto& text : *texts) words += (words.empty() ? "" : " ") + text.value_or(std::string{});
    return assign(settings, key, words);
  }
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
  return fmt::format("unknown table [{}]: did you mean [{}]?", name,
                     nearest(name, {"daemon", "cluster", "coordinator", "arbitration"}));
}

// Sets one key of one table from a node of the file.
std::string apply(DaemonSettings& settings, std::string_view table, std::string_view name, const toml::node& node) {
  const Key* key = find_key(table, name);
  return key == nullptr ? unknown_key(table, name) : assign(settings, *key, node);
}

// Returns the error with "FILE:LINE: " in front, which editors recognise.
Error at(const std::string& path, const toml::source_region& where, const std::string& what) {
  return Error{fmt::format("{}:{}: {}", path, where.begin.line, what)};
}

// Sets the keys of one table, up to the first error.
Status read_table(const std::string& path, std::string_view name, const toml::table& table, DaemonSettings& settings) {
  for (const auto& [key, node] : table) {
    const std::string wrong = apply(settings, name, key.str(), node);
    if (!wrong.empty()) return at(path, key.source(), wrong);
  }
  return success();
}

std::string assign(DaemonSettings& settings, const Key& key, const event::Value& value) {
  return std::visit([&](const auto& v) { return assign(settings, key, v); }, value);
}

// Visits the keys that change decisions; no trace has those of [daemon] and [cluster].
template <class Visit>
void coordinator_keys(Visit&& visit) {
  for (const Key& key : keys) {
    if (key.table != "daemon" && key.table != "cluster") visit(key);
  }
}

}  // namespace

Status read_file(const std::string& path, DaemonSettings& settings) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + " is a directory, not a hocket.toml"};
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
    const bool known = std::ranges::find(keys, name.str(), &Key::table) != keys.end();
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

Status set(DaemonSettings& settings, const std::string& key, const event::Value& value, const std::string& option) {
  const std::size_t dot = std::min(key.find('.'), key.size());
  const std::string table = key.substr(0, dot);
  const std::string name = key.substr(std::min(dot + 1, key.size()));
  const Key* known = find_key(table, name);
  const std::string wrong = known == nullptr ? unknown_key(table, name) : assign(settings, *known, value);
  if (wrong.empty()) return success();
  return Error{option + ": " + wrong};
}

DaemonSettings with_cores(DaemonSettings settings) {
  if (settings.cores != 0) return settings;
  const auto nodes = parse_nodes(settings.nodes);
  for (const model::Node& node : nodes.value()) settings.cores += node.cores;
  settings.counts_nodes = settings.cores == 0;
  if (settings.counts_nodes) settings.cores = own_cores();
  return settings;
}

std::int64_t own_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // A batch system or taskset may allow fewer cores than the machine has.
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const std::int64_t cores = known ? CPU_COUNT(&allowed) : std::thread::hardware_concurrency();
  return std::max<std::int64_t>(1, cores);
}

std::string print(const DaemonSettings& settings) {
  std::string out = "# hocket.toml: the settings of hocketd, with the values in force. Times are in seconds.\n";
  std::string_view table;
  for (const Key& key : keys) {
    if (table != key.table) out += fmt::format("\n[{}]\n", key.table);
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

coordinator::CoordinatorSettings for_coordinator(const DaemonSettings& settings) {
  // The values are in the order of the members of coordinator::CoordinatorSettings.
  const bool flops = settings.objective == "flops";
  return {policy::parse_combination(settings.policy).value(),
          from_s(settings.lease_s),
          from_s(settings.linger_s),
          from_s(settings.turn_s),
          from_s(settings.keep_alive_s),
          settings.cores,
          from_s(settings.join_limit_s),
          {from_s(settings.uncertainty_s), from_s(settings.reconfiguration_s),
           flops ? policy::Objective::flops : policy::Objective::iterations, settings.least_gain,
           size_limits.parse(settings.size_limits).value()},
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
          settings.tell_waits,
          parse_target_policies(settings.target_policies).value(),
          {{settings.direct, settings.divides_evenly,
            settings.most_loss < 0 ? std::optional<double>{} : 1 - settings.most_loss, settings.shared_server},
           settings.system_nodes,
           settings.system_servers},
          settings.request_scheduler,
          weights.parse(settings.application_weights).value(),
          from_s(settings.delegate_after_s)};
}

event::Properties for_trace(const DaemonSettings& settings) {
  event::Properties header;
  coordinator_keys([&](const Key& key) {
    std::visit([&](const auto& type) { header.emplace_back(key.name, settings.*type.value); }, key.type);
  });
  return header;
}

Result<DaemonSettings> from_trace(const event::Properties& header, std::int64_t version) {
  DaemonSettings settings;
  std::string wrong;
  coordinator_keys([&](const Key& key) {
    const event::Value* value = event::find(header, key.name);
    // Traces without the key were made by an older hocket.
    if (value == nullptr) value = key.default_in(version);
    if (value == nullptr || !wrong.empty()) return;
    wrong = assign(settings, key, *value);
  });
  if (!wrong.empty()) return Error{"the header's settings cannot be used for a replay: " + wrong};
  return settings;
}

}  // namespace hocket::config
