// hocket-server: an I/O server. It receives reads and writes of many clients, merges them, and carries them out on
// the files below one directory. This file parses the command line and prepares the process.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/server_files.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "bus/local_socket.hpp"
#include "bus/private_directory.hpp"
#include "file_system/ask_target.hpp"
#include "forward/capabilities.hpp"
#include "forward/forward_service.hpp"
#include "server/control.hpp"
#include "server/relayed_calls.hpp"
#include "server/server.hpp"
#include "server/turn_taker.hpp"
#include "transport/address.hpp"
#include "transport/held_view.hpp"
#include "transport/held_writes.hpp"
#include "transport/proof.hpp"

namespace {

using namespace hocket;

// Exit codes: a failure at run time, and a wrong command line.
constexpr int failed = 1;
constexpr int misused = 2;

// Name of the socket for programs under `hocket forward`, after that of the server (python/hocket/forward_page.py).
constexpr const char* forward_socket = ".forward";

// Writes one line. Names of files come from clients.
void log(std::string_view text) { std::fprintf(stderr, "hocket-server: %s\n", printable(text).c_str()); }

int complain(const Error& error, int code) {
  log(error.text);
  return code;
}

// The command line; `declare` documents each option.
struct ServerOptions {
  std::string name = "s1";
  std::string directory;
  std::string runtime_directory;
  std::string tcp;  // empty: at the address of this node that hocketd knows, if any; "none": no TCP
  std::string injection;
  std::uint64_t buffer_bytes = 64U << 20U;
  std::uint64_t exchange_bytes = 1U << 30U;
  int threads = 2;
  int forward_threads = 4;
  forward::SchedulerChoice scheduler;
  std::uint64_t forward_limit = 0;
  double longest_turn_wait_s = to_s(server::TurnLimits{}.longest);
  bool write_behind = false;
  bool merges_not = false;
};

void declare(CLI::App& app, ServerOptions& options) {
  constexpr std::uint64_t least_buffer = 8U << 20U;
  app.add_option("--name", options.name, "the server's name, unique on the cluster")
      ->check([](const std::string& name) {
        const bool good = !name.empty() && name.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789._-") == std::string::npos;
        return good ? std::string{} : "'" + name + "' may only have letters, digits, '.', '_' and '-'";
      });
  app.add_option("--dir", options.directory, "the directory whose files it serves")->required();
  app.add_option("--runtime-dir", options.runtime_directory, "where sockets and the secret are (else $HOCKET_DIR)");
  app.add_option("--buffer", options.buffer_bytes, "most memory for data; 64m, 1g (at least 8m)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(least_buffer, std::uint64_t{1} << 44U));
  app.add_option("--exchange", options.exchange_bytes,
                 "most memory for data sets that applications exchange by name (hocket:/NAME); 0: none")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 44U));
  app.add_flag("--write-behind", options.write_behind,
               "answer writes before they are in the file; sync and close report what failed");
  app.add_option("--longest-turn-wait", options.longest_turn_wait_s,
                 "seconds for which data that nobody waits for are held until their application has its turn at the "
                 "storage; 0: store at once")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option(
      "--tcp", options.tcp,
      "also listen at HOST:PORT, for clients on other nodes; port 0: any free one; none: not at all (default: "
      "any port of this node's address in its cluster, if it is in one)");
  app.add_option("--threads", options.threads, "I/O threads")->check(CLI::Range(1, 64));
  app.add_option("--forward-threads", options.forward_threads, "calls of programs under 'hocket forward' at a time")
      ->check(CLI::Range(1, 256));
  app.add_option("--scheduler", options.scheduler.name, "the order of these calls while they wait, e.g. job-fair")
      ->check(CLI::IsMember(request_scheduler::algorithm_names()))
      ->each([&options](const std::string&) { options.scheduler.by = event::chooser::by_operator; });
  app.add_option("--data-servers", options.scheduler.data_servers,
                 "for --scheduler twins: data servers of the file system (else as Lustre and BeeGFS say)")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--stripe-bytes", options.scheduler.stripe_bytes,
                 "for --data-servers: bytes of a file on one of them, before the next one's begin; 4m (1m)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U));
  app.add_option("--forward-limit", options.forward_limit, "for measurements: bytes/s of these calls together; 60m")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40U));
  app.add_option("--inject", options.injection, "for tests: \"delay=512us after=3\", \"errno=ENOSPC after=2\"");
  app.add_flag("--no-merge", options.merges_not, "for benchmarks: execute each request separately");
}

// Creates the runtime directory and in it that of the servers. No other user may have access to either: the owner of
// the runtime directory can replace the other one, its sockets, and the secret.
Status prepare(const std::string& runtime_directory) {
  const Status ready = bus::make_runtime_directory(runtime_directory, "--runtime-dir");
  return ready ? bus::make_runtime_directory(server_files::directory(runtime_directory), "--runtime-dir") : ready;
}

// Locks the server's name, since two servers of one name would share a socket. The lock ends with the process.
Result<Fd> take_name(const ServerOptions& options, const std::string& instance) {
  const std::string path = server_files::lock(options.runtime_directory, options.name);
  Fd lock{open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!lock) return Error{"cannot open " + path + ": " + error_text(errno)};
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{"another server is called '" + options.name + "'; choose another --name"};
  // Nothing of an earlier server stays: its instance would count as running.
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), instance.data(), instance.size(), 0) != static_cast<ssize_t>(instance.size()))
    return Error{"cannot write " + path + ": " + error_text(errno)};
  return lock;
}

// Returns where to listen for clients of other nodes; "": nowhere.
std::string tcp_address(const ServerOptions& options) {
  if (options.tcp == "none") return {};
  if (!options.tcp.empty()) return options.tcp;
  std::string host = whole_file(server_files::address(options.runtime_directory).c_str(), NI_MAXHOST);
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return host.empty() ? host : host + ":0";
}

// Sets the process's umask, signals and limits. Returns the signals that stop the server; they are blocked, so that a
// signalfd receives them.
sigset_t prepare_process() {
  umask(077);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit fails with EFBIG
  // Each client and each open file needs descriptors, and limits of who has started the server are not its clients'.
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  return signals;
}

// Gives up what a server of root does not need. It opens files by name, as root's own programs do. The threads of
// forwarded calls, which get open files, keep nothing (forward_service.cpp).
Status give_up_rights() {
  const Status given_up = forward::give_up_new_rights();
  return given_up ? forward::keep_only({CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER}) : given_up;
}

// Opens the Unix socket and, if requested, the TCP socket. Returns their addresses, separated by blanks.
Result<std::string> listen(server::HocketServer& server, const ServerOptions& options, const std::string& base,
                           const std::string& instance) {
  auto local = bus::listen_at(base + ".sock");
  if (!local) return local.error();
  const std::string node = transport::node_number();
  transport::Address own_path{true, base + ".sock", {}, node.empty() ? "" : instance, node};
  server.listen(std::move(local).value(), {{}, transport::identity_of(own_path)});
  const std::string addresses = transport::text_of(own_path);
  const std::string tcp = tcp_address(options);
  if (tcp.empty()) return addresses;
  const auto address = transport::read_address("tcp:" + tcp);
  if (!address || !address.value().instance.empty()) return Error{"--tcp '" + tcp + "' is not HOST:PORT"};
  if (address.value().host == "0.0.0.0" || address.value().host == "::") {
    return Error{"--tcp '" + tcp + "' names no host by which other nodes reach this one; give its name"};
  }
  if (node.empty()) return Error{"cannot read /proc/sys/kernel/random/boot_id, by which clients of this node know it"};
  auto secret = transport::read_or_make_secret(transport::secret_path(options.runtime_directory));
  if (!secret) return secret.error();
  auto listener = transport::listen_tcp(address.value());
  if (!listener) return listener.error();
  transport::Address own = listener.value().address;
  own.instance = instance;
  own.node = node;
  server.listen(std::move(listener.value().socket), {secret.value(), transport::identity_of(own)});
  return addresses + " " + transport::text_of(own);
}

server::HocketServer::ServerSettings settings_of(const ServerOptions& options, const server::Injection& injection) {
  server::HocketServer::ServerSettings settings;
  settings.name = options.name;
  settings.secret_file = transport::secret_path(options.runtime_directory);
  settings.write_behind = options.write_behind;
  settings.engine.buffer_bytes = static_cast<std::int64_t>(options.buffer_bytes);
  settings.engine.threads = options.threads;
  settings.exchange.most_bytes = static_cast<std::int64_t>(options.exchange_bytes);
  settings.engine.merges = !options.merges_not;
  settings.engine.injection = injection;
  return settings;
}

// Runs the server until a signal stops it. Returns the exit code.
int serve(const ServerOptions& options, const server::Injection& injection) {
  const sigset_t signals = prepare_process();
  if (const Status given_up = give_up_rights(); !given_up) return complain(given_up.error(), failed);
  const Fd stop{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (const Status ready = prepare(options.runtime_directory); !ready) return complain(ready.error(), failed);
  const std::string base = server_files::directory(options.runtime_directory) + "/" + options.name;
  const std::string instance = transport::new_instance();
  const auto lock = take_name(options, instance);
  if (!lock) return complain(lock.error(), failed);
  const auto held = transport::HeldWrites::in(options.runtime_directory, options.name);
  if (!held) return complain(held.error(), failed);
  server::HocketServer::ServerSettings settings = settings_of(options, injection);
  settings.engine.held = held.value().get();
  server::TurnTaker turns{
      bus::socket_in(options.runtime_directory), {.longest = from_s(options.longest_turn_wait_s)}, log};
  if (options.longest_turn_wait_s > 0) settings.turns = &turns;
  auto queue = forward::StorageQueue::create({.scheduler = options.scheduler,
                                              .forwarded = options.forward_threads,
                                              .collective = options.threads,
                                              .read_stripes = forward::FileDataServers::reader_for(options.directory)});
  if (!queue) return complain(queue.error(), failed);
  settings.engine.queue = queue.value().get();
  std::unique_ptr<server::RelayedCalls> relayed;
  settings.take_relay = [&relayed](transport::Stream stream) { relayed->take(std::move(stream)); };
  server::LoadCounters load;
  const auto server = server::HocketServer::make(settings, options.directory, load, log);
  if (!server) return complain(server.error(), failed);
  const auto addresses = listen(*server.value(), options, base, instance);
  if (!addresses) return complain(addresses.error(), failed);
  transport::HeldView held_by_all;
  held_by_all.attach(options.runtime_directory);
  auto socket = forward::listen_for_forwarding(base + forward_socket);
  if (!socket) return complain(socket.error(), failed);
  auto forwarding =
      forward::ForwardService::start({.limit_bytes_per_s = static_cast<std::int64_t>(options.forward_limit),
                                      .held = &held_by_all,
                                      .queue = queue.value().get()},
                                     server.value()->directory(), std::move(socket).value(), log);
  if (!forwarding) return complain(forwarding.error(), failed);
  auto relays = server::RelayedCalls::make(server.value()->directory(), base + forward_socket, log);
  if (!relays) return complain(relays.error(), failed);
  relayed = std::move(relays).value();
  event::Server about;
  about.server = options.name;
  about.addresses = addresses.value();
  about.instance = instance;
  about.directory = server.value()->directory();
  about.file_system = file_system::target_of_path(about.directory);
  about.buffer_bytes = static_cast<std::int64_t>(options.buffer_bytes);
  about.write_behind = options.write_behind;
  about.exchange_bytes = static_cast<std::int64_t>(options.exchange_bytes);
  server::Control control{bus::socket_in(options.runtime_directory),
                          about,
                          load,
                          log,
                          [&server](std::optional<event::ServerMap> map, std::function<void()> stored) {
                            server.value()->take_map(std::move(map), std::move(stored));
                          },
                          [&server](const event::MoveDataSets* move, server::DataSetExchange::LeftReport report) {
                            server.value()->take_data_set_servers(
                                move == nullptr ? std::nullopt : server::servers_of(*move), std::move(report));
                          },
                          forwarding.value().get()};
  // The process that started this one may wait for this line.
  std::printf("hocket-server %s (%d) listens on %s\n", options.name.c_str(), getpid(), addresses.value().c_str());
  std::fflush(stdout);
  server.value()->run(stop.get());
  turns.leave();
  control.leave();
  relayed.reset();
  forwarding.value().reset();
  unlink((base + ".sock").c_str());
  unlink((base + forward_socket).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Serves the files of a directory to the processes of MPI applications."};
  ServerOptions options;
  declare(app, options);
  app.set_version_flag("--version", std::string{"hocket-server "} + HOCKET_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {  // --help, --version
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    return complain(Error{std::string{error.what()} + "; see hocket-server --help"}, misused);
  }
  const auto injection = server::read_injection(options.injection);
  if (!injection) return complain(injection.error(), misused);
  if (options.runtime_directory.empty()) options.runtime_directory = bus::runtime_directory();
  options.runtime_directory = std::filesystem::absolute(options.runtime_directory);  // clients run elsewhere
  return serve(options, injection.value());
}
