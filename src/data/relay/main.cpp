// hocket-forward-relay: has hocket-servers of other nodes carry out the calls of a program under `hocket forward --on`.
// `hocket forward` starts one, and writes a line to its stdin for each server: "SOCKET ADDRESSES". The relay answers
// with a line "SOCKET", or "SOCKET why not". At the end of stdin it ends, and says what it has done. This file parses
// the command line.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <list>
#include <string>

#include "base/utf8.hpp"
#include "forward/capabilities.hpp"
#include "forward/forward_service.hpp"
#include "relay/relay.hpp"
#include "transport/held_view.hpp"
#include "transport/proof.hpp"

namespace {

using namespace hocket;

struct RelayOptions {
  std::string mount;
  std::string runtime_directory;
  int calls = 16;
  bool fails = false;
};

// The state that all parts of the relay share.
struct SharedByAll {
  std::string run = transport::new_instance();
  relay::RelayedFiles files;
  transport::HeldView held;  // by I/O servers of this node
};

// The part of the relay that sends calls to one server.
struct ServedSocket {
  std::string path;
  std::unique_ptr<relay::CallRelay> relay;
  std::unique_ptr<forward::ForwardService> service;
};

void log(std::string_view text) { std::fprintf(stderr, "hocket-forward-relay: %s\n", printable(text).c_str()); }

void declare(CLI::App& app, RelayOptions& options) {
  app.add_option("--mount", options.mount, "the directory whose files are forwarded")->required();
  app.add_option("--runtime-dir", options.runtime_directory, "where sockets and the secret are")->required();
  app.add_option("--calls", options.calls, "calls at a time of each server")->check(CLI::Range(1, 256));
  app.add_flag("--fail", options.fails, "calls fail with EIO while their server cannot be reached");
}

Result<ServedSocket> serve(const RelayOptions& options, const std::string& socket, const std::string& addresses,
                           SharedByAll& shared) {
  ServedSocket served{socket, nullptr, nullptr};
  auto server = std::make_shared<relay::RemoteServer>(relay::RemoteServer::RemoteSettings{
      .addresses = addresses, .secret_file = transport::secret_path(options.runtime_directory), .run = shared.run});
  shared.files.add(server);
  served.relay = std::make_unique<relay::CallRelay>(std::move(server), shared.files, options.fails);
  auto listener = forward::listen_for_forwarding(socket);
  if (!listener) return listener.error();
  auto service = forward::ForwardService::start(
      {.threads = options.calls, .held = &shared.held, .maker = served.relay.get()}, options.mount,
      std::move(listener).value(), [](const std::string& text) { log(text); });
  if (!service) return service.error();
  served.service = std::move(service).value();
  return served;
}

int relay_calls(const RelayOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // Signals of the terminal are for the program. The end of stdin ends the relay.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  if (const Status given_up = forward::give_up_new_rights(); !given_up) return log(given_up.error().text), 1;
  SharedByAll shared;
  shared.held.attach(options.runtime_directory);
  std::list<ServedSocket> all;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    const std::string socket = line.substr(0, blank);
    auto served = serve(options, socket, line.substr(blank + 1), shared);
    fmt::print("{}{}\n", socket, served ? "" : " " + served.error().text);
    std::fflush(stdout);
    if (served) all.push_back(std::move(served).value());
  }
  relay::RelayTotals sum;
  for (ServedSocket& one : all) {
    one.service.reset();
    unlink(one.path.c_str());
    const relay::RelayTotals totals = one.relay->totals();
    sum.calls += totals.calls;
    sum.bytes += totals.bytes;
    sum.refused += totals.refused;
    sum.lost += totals.lost;
  }
  fmt::print("{} {} {} {}\n", sum.calls, sum.bytes, sum.refused, sum.lost);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Has I/O servers of other nodes carry out the calls of a program under 'hocket forward --on'."};
  RelayOptions options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    log(error.what());
    return 2;
  }
  return relay_calls(options);
}
