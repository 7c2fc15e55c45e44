// A hocket-server as a process of a benchmark.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "figures.hpp"
#include "transport/proof.hpp"
#include "transport/server_link.hpp"

namespace bench {

using hocket::from_s;
using hocket::Time;
using hocket::transport::ServerLink;

inline double seconds_since(Time start) { return hocket::to_s(hocket::node_now() - start); }

// A hocket-server process with the options `more`. It ends with this object.
class Server {
 public:
  Server(const std::string& directory, const std::string& name, const std::vector<std::string>& more)
      : directory_(directory) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) die("pipe failed");
    std::vector<std::string> words{HOCKET_SERVER, "--name", name, "--dir", directory, "--runtime-dir", directory};
    words.insert(words.end(), more.begin(), more.end());
    child_ = fork();
    if (child_ == 0) {
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      dup2(ends[1], STDOUT_FILENO);
      execv(HOCKET_SERVER, arguments.data());
      std::_Exit(127);
    }
    // The server prints its addresses when it listens: the Unix socket first, then TCP.
    close(ends[1]);
    std::array<char, 1024> line{};
    const ssize_t n = read(ends[0], line.data(), line.size() - 1);
    close(ends[0]);
    const std::string text{line.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
    const std::size_t at = text.find("listens on ");
    if (at == std::string::npos) die("hocket-server did not start");
    addresses_ = text.substr(at + 11, text.size() - at - 12);
  }
  ~Server() {
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }

  const std::string& addresses() const { return addresses_; }
  // Connects a client, by the Unix socket if `local`, else by TCP.
  std::unique_ptr<ServerLink> connect(bool local) const {
    const std::size_t blank = addresses_.find(' ');
    // The address lacks the node's number, which would keep a client on this node from using TCP.
    const std::size_t node = addresses_.rfind('@');
    const std::string address = local ? addresses_.substr(0, blank) : addresses_.substr(blank + 1, node - blank - 1);
    const std::string secret =
        local ? std::string{} : good(hocket::transport::read_secret(hocket::transport::secret_path(directory_)));
    return good(ServerLink::connect(address, secret, from_s(10)));
  }

 private:
  std::string directory_;
  std::string addresses_;
  pid_t child_;
};

// Measures data sets through 1, 2 and 4 servers below the directory, and prints the results (server_data_sets.cpp).
void measure_data_sets(const std::string& directory);

}  // namespace bench
