// The client processes of a server, and the applications to which they belong, as hocketd vouches for them.
//
//   connection ─► process ─► its line of ancestors ─► one is known to be an application's: it is that application's
//                                                  └► else `ask(line)`, and hocketd's answer comes by `vouched`
//
// hocketd knows only rank 0 of an MPI application at first. Processes that have the same parent, its launcher, are the
// application's, too, as many as it has.
//
// A client does not name its application, because the schedulers divide the server between applications. Until hocketd
// has answered, and while it does not, calls count for an application of their own with the name "". A process is known
// by its number and start, because numbers are used again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace hocket::forward {

// A process: its number, and when it began, in ticks since the node's start.
struct ProcessKey {
  pid_t number = 0;
  std::uint64_t start = 0;  // 0: the process has ended
  bool operator==(const ProcessKey&) const = default;
  bool operator<(const ProcessKey& other) const {
    return number != other.number ? number < other.number : start < other.start;
  }
};

// Returns the process and its ancestors, nearest first; only the number if it has ended. Reads /proc.
std::vector<ProcessKey> line_of(pid_t process);

// Thread-safe.
class ForwardClients {
 public:
  using AskHocketd = std::function<void(const std::string& pids)>;
  using NumberOf = std::function<std::uint64_t(const std::string& application)>;
  using LineOf = std::function<std::vector<ProcessKey>(pid_t process)>;

  struct ClientApplication {
    std::string name;
    std::uint64_t number = 0;    // in the queue
    std::int64_t processes = 1;  // as hocketd says
    std::int64_t clients = 0;    // processes that have connections here now
    std::int64_t weight = 1;
    ProcessKey launcher{};  // parent of the first member of several processes, if that is a client; 0: not known
  };
  struct ClientProcess {
    std::string pids;  // its line, as ASK_APPLICATION has it
    std::vector<ProcessKey> line;
    ClientApplication* application = nullptr;
    std::size_t connections = 0;
  };
  // For whom a call is.
  struct CallOwner {
    std::uint64_t application = 0;
    std::int64_t processes = 1;
    std::int64_t weight = 1;
  };

  // `number_of` gives each application name its number.
  explicit ForwardClients(NumberOf number_of, LineOf line = line_of);

  // Sets who asks hocketd, and asks for all processes that are not known. An empty function: hocketd is not there.
  // Another hocketd says anew which weights are not 1.
  void ask_with(const AskHocketd& ask);
  // A process has connected. The result is valid until `remove`.
  ClientProcess* add(pid_t process);
  void remove(ClientProcess* client);
  // Returns for whom a call of the process is; nullptr: of one that is not known. `processes` is at least the number of
  // its application's that are connected here: hocketd knows the processes of MPI applications, and of other runs the
  // one that started them.
  CallOwner of(const ClientProcess* client) const;
  // Takes hocketd's answer.
  void vouched(const event::ApplicationFor& answer);
  // Takes the weight of an application. That of one without processes here is not kept: `vouched` has it, too.
  void weigh(const event::ApplicationWeight& told);
  // Returns a line for each application whose weight is not 1, "WEIGHT NAME", 32 at most.
  std::string weights() const;

 private:
  void belong(ClientProcess& client, ClientApplication& application);
  ClientApplication* launched_with(const std::vector<ProcessKey>& line);

  const NumberOf number_of_;
  const LineOf line_of_;
  mutable std::mutex mutex_;
  AskHocketd ask_;
  ClientApplication unknown_;
  std::map<ProcessKey, ClientApplication> applications_;  // by the first member's process
  std::map<ProcessKey, ClientProcess> processes_;
};

}  // namespace hocket::forward
