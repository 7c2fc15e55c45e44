// The program hocketd decides when applications use shared storage: those of its node, or as the leader of a cluster
// those of all nodes that have an agent. An agent is this program, too.
// This file parses options, merges them with hocket.toml, and starts the leader, a replay, a listing, or the
// explanation of events.
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/utf8.hpp"
#include "bus/private_directory.hpp"
#include "config/settings.hpp"
#include "config/target_policies.hpp"
#include "daemon/explaining.hpp"
#include "daemon/for_servers.hpp"
#include "daemon/leader.hpp"
#include "daemon/relaying.hpp"
#include "daemon/replay.hpp"
#include "daemon/runtime_directory.hpp"
#include "file_system/ask_target.hpp"
#include "link/key.hpp"
#include "policy/core_policy.hpp"
#include "policy/policy.hpp"

namespace {

using namespace hocket;

// Exit codes: 1 if the daemon cannot run, 2 if options or configuration are wrong.
constexpr int failed = 1;
constexpr int misused = 2;

int complain(const Error& error, int code) {
  std::fprintf(stderr, "hocketd: %s\n", printable(error.text).c_str());
  return code;
}

// The options of the command line; an absent one leaves the configuration's value in force.
struct DaemonOptions {
  std::optional<std::string> config, dir, policy, policy_file, metric, metrics, trace, replay;
  std::optional<double> exit_when_idle_s, most_loss;
  std::optional<std::int64_t> system_nodes, system_servers;
  bool no_direct = false;
  bool divide_evenly = false;
  bool shared_server = false;
  bool print_config = false;
  bool print_policies = false;
  bool leader = false;
  bool agent = false;
  bool munge = false;
  std::optional<std::string> listen, leaders, key, address, make_key, users;
  bool explain = false;
  std::optional<std::string> target_of;
  bool print_targets = false;
};

// Declares the options. Their values are checked in settings_from, with those of hocket.toml.
void declare(CLI::App& app, DaemonOptions& options) {
  app.add_option("--dir", options.dir, "runtime directory (default: that of the configuration, else $HOCKET_DIR)");
  app.add_option("--config", options.config, "hocket.toml to read; --print-config shows every key");
  app.add_option("--policy", options.policy,
                 "policies, names joined by +, e.g. fcfs or phase-shift+io-aware (see --print-policies)");
  app.add_option("--policy-file", options.policy_file, "a policy in Python, which replaces the policy of its kind");
  app.add_option("--trace", options.trace,
                 "file of the trace, replaced if it exists (default: a new one in DIR/traces)");
  auto* const leader = app.add_flag("--leader", options.leader, "lead a cluster: agents of other nodes may join");
  app.add_flag("--agent", options.agent, "carry what this node's members say to a leader, and decide nothing")
      ->excludes(leader);
  app.add_option("--users", options.users, "all: programs of all users of the node take part; own: those of this user");
  app.add_option("--listen", options.listen, "HOST:PORT at which the leader takes agents");
  app.add_option("--leaders", options.leaders,
                 "HOST:PORT of leaders, joined by blanks; the agent uses the first one "
                 "that answers");
  app.add_option("--key", options.key, "file of the key that all nodes of the cluster have");
  app.add_flag("--munge", options.munge, "agents and leader know each other by MUNGE, in place of a key");
  app.add_option("--address", options.address,
                 "HOST by which other nodes reach the I/O servers of this one (default: that of the link)");
  app.add_option("--make-key", options.make_key, "write a new key to FILE, and exit");
  app.add_option("--exit-when-idle", options.exit_when_idle_s,
                 "exit after this many SECONDS without a connected member");
  app.add_option("--metrics", options.metrics,
                 "serve /metrics for Prometheus at HOST:PORT or unix:/PATH (default: nowhere)");
  app.add_flag("--no-direct", options.no_direct,
               "policies that give out I/O servers give each application one at least");
  app.add_flag("--divide-evenly", options.divide_evenly, "I/O servers of an application divide its nodes");
  app.add_option("--most-loss", options.most_loss,
                 "under mckp, no application loses more than this PART of its bandwidth under static");
  app.add_flag("--shared-server", options.shared_server, "mckp may let applications share one I/O server");
  app.add_option("--system-nodes", options.system_nodes, "nodes of the whole machine, for the policy static");
  app.add_option("--system-servers", options.system_servers, "I/O servers of the whole machine, for the same");
  app.add_flag("--print-config", options.print_config, "print the configuration in force as hocket.toml, and exit");
  app.add_option(
      "--metric", options.metric,
      "what the policies cost and dynamic minimise: cpu-time, io-time, interference, makespan, or a formula");
  app.add_flag("--print-policies", options.print_policies, "print NAME, KIND and SUMMARY of each policy, and exit");
  app.add_option(
      "--replay", options.replay,
      "give a TRACE to a new coordinator, compare the facts of every command, and exit; a trace that was made "
      "with a policy file needs --policy-file, whose SHA-256 is compared before it runs");
  app.add_flag(
      "--explain", options.explain,
      "read DECISION and OUTCOME events, one line each as in a trace, print their sentences as JSON, and exit");
  app.add_option("--target-of", options.target_of,
                 "print the name of the target of a PATH, or of a device as dev:8:1, and exit");
  app.add_flag("--print-targets", options.print_targets,
               "print NAME, DEVICE and MOUNT POINT of each mounted target, and exit");
  app.set_version_flag("--version", std::string{"hocketd "} + HOCKET_VERSION);
}

// Sets the rules by which policies give out I/O servers.
Status set_arbitration(const DaemonOptions& options, config::DaemonSettings& settings) {
  Status done = success();
  const auto set = [&](const char* key, const event::Value& value, const char* option) {
    if (done) done = config::set(settings, std::string{"arbitration."} + key, value, option);
  };
  if (options.no_direct) set("direct", false, "--no-direct");
  if (options.divide_evenly) set("divides_evenly", true, "--divide-evenly");
  if (options.most_loss) set("most_loss", *options.most_loss, "--most-loss");
  if (options.shared_server) set("shared_server", true, "--shared-server");
  if (options.system_nodes) set("system_nodes", *options.system_nodes, "--system-nodes");
  if (options.system_servers) set("system_servers", *options.system_servers, "--system-servers");
  return done;
}

// Returns the settings: defaults, then hocket.toml, then options. Every source passes the same checks.
Result<config::DaemonSettings> settings_from(const DaemonOptions& options) {
  config::DaemonSettings settings;
  Status done = success();
  if (options.config) done = config::read_file(*options.config, settings);
  if (done && options.dir) done = config::set(settings, "daemon.dir", *options.dir, "--dir");
  if (done && options.policy) done = config::set(settings, "coordinator.policy", *options.policy, "--policy");
  if (done && options.metric) done = config::set(settings, "coordinator.metric", *options.metric, "--metric");
  if (done && options.policy_file) {
    done = config::set(settings, "coordinator.policy_file", *options.policy_file, "--policy-file");
  }
  if (done && options.trace) done = config::set(settings, "daemon.trace", *options.trace, "--trace");
  if (done && options.metrics) done = config::set(settings, "daemon.metrics", *options.metrics, "--metrics");
  if (done && options.exit_when_idle_s) {
    done = config::set(settings, "daemon.exit_when_idle_s", *options.exit_when_idle_s, "--exit-when-idle");
  }
  if (done && options.users) done = config::set(settings, "daemon.users", *options.users, "--users");
  if (done && options.listen) done = config::set(settings, "cluster.listen", *options.listen, "--listen");
  if (done && options.leaders) done = config::set(settings, "cluster.leaders", *options.leaders, "--leaders");
  if (done && options.key)
    done = config::set(settings, "cluster.key", std::filesystem::absolute(*options.key).string(), "--key");
  if (done && options.address) done = config::set(settings, "cluster.address", *options.address, "--address");
  if (done) done = set_arbitration(options, settings);
  if (done && options.key && options.munge) done = Error{"--key and --munge: give one of them"};
  if (done && options.munge) done = config::set(settings, "cluster.key", std::string{"munge"}, "--munge");
  const bool is_for_cluster = options.listen || options.leaders || options.key || options.munge || options.address;
  if (done && is_for_cluster && !options.agent && !options.leader)
    done =
        Error{"--listen, --leaders, --key, --munge and --address are for --leader and --agent: give one of these, too"};
  if (done && options.agent && settings.leaders.empty())
    done =
        Error{"an agent needs the addresses of leaders: --leaders HOST:PORT, or 'leaders' in [cluster] of hocket.toml"};
  if (!done) return done.error();
  if (settings.dir.empty()) settings.dir = bus::runtime_directory();
  const char* const names = std::getenv(file_system::target_names_variable);
  if (const auto parsed = file_system::parse_target_names(names ? names : ""); !parsed)
    return Error{std::string{file_system::target_names_variable} + ": " + parsed.error().text};
  // The check of the key has passed. Devices and chosen names are of this node, so a replay must not look them up.
  const auto chosen = file_system::parse_target_names(settings.target_names);
  auto named = config::with_target_names(settings.target_policies, chosen.value());
  if (!named) return Error{"coordinator.target_policies: " + named.error().text};
  settings.target_policies = std::move(named).value();
  return settings;
}

// The text of a log line as `printable` returns it: names come from applications.
class PrintableText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

void open_log(const config::DaemonSettings& settings) {
  const std::string path = settings.dir + "/hocketd.log";
  try {
    // A daemon without a writable log still coordinates, and warns on stderr.
    spdlog::set_default_logger(spdlog::basic_logger_st("hocketd", path));
  } catch (const spdlog::spdlog_ex&) {
    spdlog::set_default_logger(spdlog::stderr_logger_st("hocketd"));
    spdlog::warn("cannot write {}: the log goes to stderr", path);
  }
  auto lines = std::make_unique<spdlog::pattern_formatter>();
  lines->add_flag<PrintableText>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %*");
  spdlog::set_formatter(std::move(lines));
  spdlog::set_level(spdlog::level::from_str(settings.log_level));
  spdlog::flush_on(spdlog::level::info);
}

// Sets process-wide state before anything else runs: private files, signals for signalfd, and no SIGPIPE.
void prepare_process() {
  umask(077);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // Each member needs a descriptor, so the limit is raised as far as allowed.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// The thread that decides writes the log and the files for I/O servers (docs/design/hanging-files.md).
void warn_of_network_file_system(const std::string& directory) {
  const std::string name = file_system::target_of_path(directory);
  constexpr std::array local{"dev:", "zfs:", "btrfs:", "bindfs:"};
  const bool is_local = std::ranges::any_of(local, [&](const char* begin) { return name.starts_with(begin); });
  if (is_local || !file_system::names_file_system(name)) return;
  spdlog::warn("{} is on the network file system {}: while that hangs, so does each grant; use a local one (--dir)",
               directory, name);
}

// A process that started the daemon may wait for this line.
void tell_listening(const std::string& socket) {
  std::printf("hocketd %d listens on %s\n", getpid(), socket.c_str());
  std::fflush(stdout);
}

// Reads the key of the cluster, and leaves the secret that follows from it to the servers of the node.
Result<std::unique_ptr<link::Tls>> tls_of(const config::DaemonSettings& settings) {
  if (settings.key.empty())
    return Error{
        "the cluster has no key: make one with hocketd --make-key FILE, copy it to all nodes, and name it with "
        "--key or 'key' in [cluster] of hocket.toml; or give --munge, where MUNGE runs"};
  if (settings.key == "munge") {
    auto munge = link::Munge::load(settings.munge_socket);
    if (!munge) return munge.error();
    return link::Tls::with_munge(std::move(munge).value());
  }
  auto key = link::read_key(settings.key);
  if (!key) return key.error();
  if (settings.users != "all") {
    const auto secret = link::secret_of_servers(key.value());
    const Status left = secret ? daemon::leave_secret(settings.dir, secret.value()) : Status{secret.error()};
    if (!left) return left.error();
  }
  return link::Tls::with_key(std::move(key).value());
}

// Holds the runtime directory and serves until the daemon ends. Returns the exit code.
int serve(const config::DaemonSettings& settings, bool is_agent, bool is_leader) {
  prepare_process();
  if (const Status ready = bus::make_runtime_directory(settings.dir, "--dir", settings.users == "all"); !ready)
    return complain(ready.error(), failed);
  // The lock must outlive the leader: it marks this process as the one that leads in the directory.
  const auto lock = daemon::take_lead(settings.dir);
  if (!lock) return complain(lock.error(), failed);
  std::unique_ptr<link::Tls> tls;
  if (is_agent || is_leader) {
    auto made = tls_of(settings);
    if (!made) return complain(made.error(), failed);
    tls = std::move(made).value();
  }
  const bool has_address = (is_agent || is_leader) && settings.users != "all";
  if (const Status left = daemon::leave_address(settings.dir, has_address ? settings.address : ""); !left)
    return complain(left.error(), failed);
  daemon::leave_target_names(settings.dir, settings.target_names, settings.users == "all");
  open_log(settings);
  warn_of_network_file_system(settings.dir);
  if (is_agent) {
    const Status relayed = daemon::relay(settings, settings.dir, std::move(tls), tell_listening);
    return relayed ? 0 : complain(relayed.error(), failed);
  }
  const auto leader = daemon::Leader::start(config::with_cores(settings), settings.dir, std::move(tls));
  if (!leader) return complain(leader.error(), failed);
  tell_listening(leader.value()->socket());
  leader.value()->run();
  return 0;
}

// Prints tab-separated lines, which tools read.
void print_policies() {
  const auto print = [](std::string_view name, const char* kind, std::string_view summary) {
    std::printf("%.*s\t%s\t%.*s\n", static_cast<int>(name.size()), name.data(), kind, static_cast<int>(summary.size()),
                summary.data());
  };
  for (const policy::Policy* one : policy::policies()) print(one->name, "access", one->summary);
  for (const policy::CorePolicy* one : policy::core_policies()) {
    print(one->name, one->kind == policy::CoreKind::sharing ? "sharing" : "interference", one->summary);
  }
  for (const policy::ServerPolicy* one : policy::server_policies()) print(one->name, "servers", one->summary);
}

// Prints tab-separated lines, which tools read.
void print_targets() {
  for (const auto& [name, mount] : file_system::mounted_targets()) {
    std::printf("%s\t%u:%u\t%s\n", name.c_str(), mount.device.major_number, mount.device.minor_number,
                printable(mount.point).c_str());
  }
}

int print_target_of(const std::string& text) {
  // Names of targets may contain slashes, after a colon: "nfs:nas:/home".
  const std::string begin = text.substr(0, text.find_first_of(":/"));
  const bool is_path = text[begin.size()] == '/' || text == "." || text == "..";
  const std::string name = is_path ? file_system::target_of_path(text) : file_system::target_called(text);
  if (name.empty()) return complain(Error{"'" + text + "': " + std::strerror(errno)}, failed);
  std::puts(name.c_str());
  return 0;
}

int replay(const std::string& trace, const std::string& policy_file) {
  const auto told = daemon::replay(trace, policy_file);
  if (!told) return complain(told.error(), failed);
  std::puts(told.value().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Coordinates the I/O of the MPI applications of this node."};
  DaemonOptions options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {  // --help, --version
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    return complain(Error{std::string{error.what()} + "; see hocketd --help"}, misused);
  }
  if (options.print_policies) {
    print_policies();
    return 0;
  }
  if (options.target_of) return print_target_of(*options.target_of);
  if (options.print_targets) {
    print_targets();
    return 0;
  }
  if (options.explain) {
    const Status explained = daemon::explain_lines(std::cin, std::cout);
    return explained ? 0 : complain(explained.error(), failed);
  }
  if (options.make_key) {
    const Status made = link::make_key(*options.make_key);
    return made ? 0 : complain(made.error(), failed);
  }
  if (options.replay) return replay(*options.replay, options.policy_file.value_or(""));
  const auto settings = settings_from(options);
  if (!settings) return complain(settings.error(), misused);
  if (options.print_config) {
    std::fputs(config::print(settings.value()).c_str(), stdout);
    return 0;
  }
  return serve(settings.value(), options.agent, options.leader);
}
