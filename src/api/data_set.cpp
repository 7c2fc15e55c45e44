// Implements one version of a data set, in the memory of the server that is its home (CLARISSE, section III-A: the
// virtual name space).
#include <unistd.h>

#include <array>
#include <cstdio>
#include <mutex>
#include <thread>

#include "api/file.hpp"
#include "api/served.hpp"
#include "api/server_list.hpp"
#include "api/status.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/host_name.hpp"
#include "transport/proof.hpp"

namespace hocket::api {
namespace {

// Returns a name that no other process ever has. Host and process id do not suffice: a container that is started again
// has those of before. A fork gets a new number.
std::string this_process() {
  static std::mutex guard;
  static pid_t process = 0;
  static std::uint64_t number = 0;
  const std::lock_guard lock{guard};
  if (process != getpid()) {
    number = transport::new_number();
    process = getpid();
  }
  return host_name() + ":" + std::to_string(process) + ":" + std::to_string(number);
}

// Fails with the code for an errno of a data set, and says what to do about it.
int fail_of_data_set(int error, const std::string& what) {
  const auto told = [&](int code, const char* why) { return fail(code, what + ": " + why); };
  switch (error) {
    case ECANCELED:
      return told(HOCKET_ERROR_CANCELED,
                  "another process of the group has gone, or a put failed; all of the group must open it again");
    case EINVAL:
      return told(HOCKET_ERROR_ARGUMENT,
                  "the server does not take it; all processes of a group must say the same application, participants, "
                  "readers and mode, and another group each time");
    case ENOSPC:
      return told(HOCKET_ERROR_NO_SPACE,
                  "the server's memory for data sets is full; start it with more, or let readers come");
    case ENOMEM: return told(HOCKET_ERROR_MEMORY, "memory has run out");
    default: return told(HOCKET_ERROR_IO, error_text(error).c_str());
  }
}

// An open version. Opening repeats attempts of at most 2 s, so that it notices a new home or a lost server.
class DataSetFile final : public hocket_file {
 public:
  DataSetFile(const Opening& opening, std::string_view name)
      : opening_(opening),
        name_(name),
        application_(opening.application.empty() ? this_process() : opening.application) {
    path = opening.path;
    mode = opening.mode;
    // Readers and writers of one application may give the same number; the last character keeps them apart.
    group = group_number(opening.group, application_ + (opening.writes() ? '>' : '<'));
  }

  int join();

  int access(const Access& access, std::int64_t& got) override;
  int size(std::int64_t& bytes) override;
  int version(std::int64_t& number) override;
  int flush() override { return is_lost() ? tell_lost() : HOCKET_OK; }
  int close() override;

 private:
  // Result of one attempt: joined; the version is not available yet; no server is there; an error.
  enum class Step { joined, not_yet, absent, failed };
  Step try_to_join(Duration patience);
  // Make one attempt to join within a time limit: try_to_join() first reaches the home.
  Step ask_to_join(Duration patience);
  bool reach_home();
  void learn_servers();
  int tell_late() const;
  // True if the server was lost, and with it the version.
  bool is_lost() const { return served_.front().lost(); }
  int tell_lost() const;

  const Opening opening_;
  const std::string name_, application_;
  event::ServerMap map_;
  std::vector<Served> served_;  // the home alone; empty: not connected
  std::int64_t version_ = 0;
  std::int64_t bytes_ = 0;  // length of the version, as far as this process knows
  int code_ = HOCKET_ERROR_NO_SERVER;
  std::string fault_;  // why it cannot be joined now; code_ belongs to it
};

// Looks the server map up again; keeps the last one if hocketd does not answer.
void DataSetFile::learn_servers() {
  const bool named = !opening_.servers.empty();
  auto map = named ? read_servers(opening_.servers) : ask_for_servers();
  if (map) {
    map_ = std::move(map).value();
    fault_ = "there is no I/O server; start one with 'hocket server start'";
    code_ = HOCKET_ERROR_NO_SERVER;
  } else {
    fault_ = map.error().text;
    code_ = named ? HOCKET_ERROR_ARGUMENT : HOCKET_ERROR_NO_DAEMON;
  }
}

// Connects to the data set's home by the current map, or keeps the connection. Returns false if that is impossible now.
bool DataSetFile::reach_home() {
  learn_servers();
  const event::ServerMap::Server* home = event::home_of(map_, name_);
  if (!served_.empty() && (served_.front().poll(), served_.front().lost())) served_.clear();
  if (!served_.empty() && home != nullptr && served_.front().server() == *home) return true;
  served_.clear();
  if (home == nullptr) return false;
  auto reached = Served::reach(*home);
  if (reached) {
    served_.push_back(std::move(reached).value());
  } else {
    fault_ = reached.error().text;
    code_ = HOCKET_ERROR_NO_SERVER;
  }
  return !served_.empty();
}

DataSetFile::Step DataSetFile::ask_to_join(Duration patience) {
  transport::DataSet what;
  what.name = name_;
  what.application = application_;
  what.writes = opening_.writes();
  what.group = group;
  what.participants = opening_.participants;
  what.readers = opening_.readers;
  // The server answers within this time, so that a missing version does not look like a silent server.
  what.patience = patience;
  int error = 0;
  served_.front().link().join(
      what, [&](int its_error, transport::ServerLink::Handle handle, std::int64_t version, std::int64_t bytes) {
        error = its_error;
        served_.front().handle = handle;
        version_ = version;
        bytes_ = bytes;
      });
  settle(served_);
  if (served_.front().lost()) {
    fault_ = "the I/O server " + served_.front().server().name + " was lost: " + served_.front().why();
    code_ = HOCKET_ERROR_NO_SERVER;
    return Step::absent;
  }
  if (error == 0) return Step::joined;
  if (error == ETIMEDOUT) return Step::not_yet;
  // Another process of the group has gone, and may come again; or the server is ending, and will close its connections.
  if (error == ECANCELED) {
    std::this_thread::sleep_for(transport::join_pause);
    return Step::not_yet;
  }
  code_ = fail_of_data_set(error, "cannot open " + path);
  return Step::failed;
}

DataSetFile::Step DataSetFile::try_to_join(Duration patience) {
  return reach_home() ? ask_to_join(patience) : Step::absent;
}

// Repeats attempts until the version is open, the time limit is over, or no server has been there for some seconds.
int DataSetFile::join() {
  const Time deadline = node_now() + opening_.wait;
  Time absent_until = Time::max();  // time limit without a server; max: it was there at the last look
  while (true) {
    const Duration left = deadline - node_now();
    // The time limit is at least 1 ms, so that a late opening is still tried once.
    const Step step = try_to_join(std::clamp<Duration>(left, std::chrono::milliseconds{1}, transport::join_slice));
    const Time now = node_now();
    switch (step) {
      case Step::joined: return HOCKET_OK;
      case Step::failed: return code_;
      case Step::not_yet:
        absent_until = Time::max();
        if (now >= deadline) return tell_late();
        break;
      case Step::absent:
        // Counts from now, not from when it was last there: noticing that a server hangs may take long.
        absent_until = std::min(absent_until, now + transport::most_absence);
        if (code_ == HOCKET_ERROR_ARGUMENT || now >= std::min(deadline, absent_until))
          return fail(code_, "cannot open " + path + ": " + fault_);
        std::this_thread::sleep_for(transport::join_pause);
    }
  }
}

// Fails with TIMEOUT.
int DataSetFile::tell_late() const {
  std::array<char, 32> wait{};
  std::snprintf(wait.data(), wait.size(), "%g", to_s(opening_.wait));
  return fail(HOCKET_ERROR_TIMEOUT, "cannot open " + path + " within " + wait.data() +
                                        " s: " + (opening_.writes() ? "no room for a version" : "no version to read") +
                                        ", or not all participants have opened it; start who is missing, or wait "
                                        "longer (wait_s)");
}

// Fails with NO_SERVER: a version ends with the server that keeps it.
int DataSetFile::tell_lost() const {
  return fail(HOCKET_ERROR_NO_SERVER, "the I/O server that kept " + path + " was lost, with this version of it: " +
                                          served_.front().why() + "; open it again");
}

int DataSetFile::access(const Access& access, std::int64_t& got) {
  if (is_lost()) return tell_lost();
  const Passed passed = pass(served_, access, opening_.participants);
  if (passed.lost) return tell_lost();
  got = passed.got;
  if (passed.error != 0)
    return fail_of_data_set(passed.error, (access.writes ? "cannot write " : "cannot read ") + path);
  if (access.writes) bytes_ = std::max(bytes_, access.end());
  return HOCKET_OK;
}

// No request is needed: a version that is read does not change, and one that is written is known as far as this process
// wrote it.
int DataSetFile::size(std::int64_t& bytes) {
  bytes = bytes_;
  return HOCKET_OK;
}

int DataSetFile::version(std::int64_t& number) {
  number = version_;
  return HOCKET_OK;
}

// The answer to CLOSE says if readers will see the version, or if it counts as read.
int DataSetFile::close() {
  if (is_lost()) return tell_lost();
  int error = 0;
  served_.front().link().close(served_.front().handle, [&](int its_error, std::int64_t) { error = its_error; });
  settle(served_);
  if (is_lost()) return tell_lost();
  return error == 0 ? HOCKET_OK : fail_of_data_set(error, "cannot close " + path);
}

}  // namespace

int open_data_set(const Opening& opening, std::string_view name, std::unique_ptr<hocket_file>& file) {
  auto set = std::make_unique<DataSetFile>(opening, name);
  const int joined = set->join();
  if (joined == HOCKET_OK) file = std::move(set);
  return joined;
}

}  // namespace hocket::api
