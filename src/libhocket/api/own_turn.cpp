#include "api/own_turn.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "bus/client.hpp"
#include "file_system/ask_target.hpp"

namespace hocket::api {
namespace {

constexpr Duration connect_limit = std::chrono::milliseconds{200};
constexpr Duration between_attempts = std::chrono::seconds{1};
// Accesses that come without this gap count together, and from this many bytes on. Smaller I/O must not wait.
constexpr Duration gap = std::chrono::milliseconds{100};
constexpr std::int64_t least_bytes = 1 << 20;

std::string text_of(const char* key) {
  const char* const value = std::getenv(key);
  return value == nullptr ? "" : value;
}

// Returns the time that a variable gives; `usual` if it is no number of seconds.
Duration time_of(const char* key, Duration usual) {
  constexpr double longest_s = 1e8;
  const std::string text = text_of(key);
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' || !(seconds >= 0 && seconds <= longest_s) ? usual : from_s(seconds);
}

std::string link_of(const std::string& link) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

event::Hello hello() {
  event::Hello said;
  said.program = link_of("/proc/self/exe");
  said.job = text_of("HOCKET_JOB");
  if (said.job.empty()) said.job = "pid-" + host_name() + "-" + std::to_string(getpid());
  said.application = text_of("HOCKET_NAME");
  if (said.application.empty()) said.application = said.program.substr(said.program.rfind('/') + 1);
  said.version = HOCKET_VERSION;
  said.pid = getpid();
  said.processes = 1;
  return said;
}

bool has_line(std::string_view lines, std::string_view line) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (lines.substr(0, end) == line) return true;
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return false;
}

// The member that one thread is.
class OwnMember {
 public:
  OwnMember() = default;
  ~OwnMember() {
    if (client_ && process_ == getpid() && client_->connected()) (void)client_->send(event::Bye{});
  }
  OwnMember(const OwnMember&) = delete;
  OwnMember& operator=(const OwnMember&) = delete;

  // Returns true if a grant was requested, so that `end` must follow.
  bool begin(const char* routine, int file, std::int64_t bytes, bool counts) {
    struct stat status {};
    if (!counts || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    event::StartIo start;
    start.target = file_system::target_of_descriptor(status.st_dev, file);
    if (!joined() || !(coordinates_ || has_line(held_, start.target))) return false;
    start.request = RequestId{++last_};
    start.file = link_of("/proc/self/fd/" + std::to_string(file));
    start.operation = routine;
    start.bytes = bytes;
    if (!client_->send(start)) return give_up();
    const bool granted = await_grant(start.request);
    started_ = node_now();
    return granted;
  }
  void end(std::int64_t moved) {
    if (!client_ || process_ != getpid()) return;
    if (!client_->send(event::FinishIo{RequestId{last_}, node_now() - started_, moved})) give_up();
  }

  // True if an access of so many bytes counts.
  bool counts(std::int64_t bytes) {
    const Time now = node_now();
    volume_ = bytes + (now - last_access_ < gap ? volume_ : 0);
    last_access_ = now;
    return volume_ >= least_bytes;
  }
  void has_ended() { last_access_ = node_now(); }

 private:
  // Leaves hocketd alone for a while. Returns false.
  bool give_up(Duration pause = between_attempts) {
    client_.reset();
    next_attempt_ = node_now() + pause;
    return false;
  }

  // Makes sure that this thread is a member.
  bool joined() {
    if (client_ && process_ == getpid() && client_->connected()) return take_in();
    if (node_now() < next_attempt_) return false;
    client_.reset();  // in the child of a fork it is the parent's
    auto client = bus::Client::connect(bus::default_socket(), connect_limit);
    if (!client) return give_up();
    client_.emplace(std::move(client).value());
    process_ = getpid();
    last_ = 0;
    if (!client_->send(hello())) return give_up();
    const Time end = node_now() + answer_;
    while (node_now() < end) {
      const auto come = client_->receive(end - node_now());
      if (!come) return give_up();
      if (!come.value()) break;
      look_at(*come.value());
      if (std::holds_alternative<event::Welcome>(come.value()->body)) return true;
    }
    return give_up(max_wait_);  // it is silent: do not wait for it again soon
  }
  // Takes in what hocketd has sent since the last access. Returns false if the connection has ended.
  bool take_in() {
    while (true) {
      const auto come = client_->receive(Duration::zero());
      if (!come) return give_up();
      if (!come.value()) return true;
      look_at(*come.value());
    }
  }
  void look_at(const event::Event& come) {
    if (const auto* welcome = std::get_if<event::Welcome>(&come.body)) held_ = welcome->held_targets;
    if (const auto* held = std::get_if<event::HeldTargets>(&come.body)) held_ = held->targets;
  }

  bool await_grant(RequestId request) {
    const Time end = node_now() + max_wait_;
    Time answer_by = node_now() + answer_;
    while (true) {
      const Time now = node_now();
      if (now >= std::min(end, answer_by)) break;
      const auto come = client_->receive(std::min(end, answer_by) - now);
      if (!come) return give_up();
      if (!come.value()) continue;
      answer_by = node_now() + answer_;
      look_at(*come.value());
      const event::Body& body = come.value()->body;
      if (const auto* grant = std::get_if<event::GrantIo>(&body); grant && grant->request == request) return true;
      if (std::holds_alternative<event::Refused>(body)) return false;
    }
    const bool silent = node_now() < end;
    if (!client_->send(event::FinishIo{request})) return give_up();
    return silent ? give_up(max_wait_) : false;
  }

  const bool coordinates_ = text_of("HOCKET_COORDINATE") != "0";
  const Duration answer_ = time_of("HOCKET_ANSWER_S", std::chrono::seconds{5});
  const Duration max_wait_ = time_of("HOCKET_MAX_WAIT_S", std::chrono::seconds{600});
  std::optional<bus::Client> client_;
  pid_t process_ = 0;  // that connected
  Time next_attempt_{};
  std::string held_;  // as in HELD_TARGETS
  std::uint64_t last_ = 0;
  Time started_{};
  std::int64_t volume_ = 0;
  Time last_access_{};
};

OwnMember& own_member() {
  static thread_local OwnMember member;
  return member;
}

// Coordination must not make an access fail, so without memory there is none.
bool begin(bool, const char* routine, int file, std::int64_t bytes) noexcept try {
  OwnMember& own = own_member();
  return own.begin(routine, file, bytes, own.counts(bytes));
} catch (...) {
  return false;
}

// What was put before is stored: its size is not known.
bool begin_sync(const char* routine, int file) noexcept try {
  return own_member().begin(routine, file, 0, true);
} catch (...) {
  return false;
}

void end(std::int64_t moved) noexcept try {
  own_member().end(moved);
  own_member().has_ended();
} catch (...) {
}

// Servers store what such a program puts at once: it is no member that they could ask for.
std::string applicant(int /*file*/) { return {}; }

constexpr AccessTurns taken_alone{begin, begin_sync, end, applicant};

}  // namespace

const AccessTurns* own_turns(AccessPath path) noexcept {
  static const bool has_job = std::getenv("HOCKET_JOB") != nullptr;
  return path == AccessPath::servers_together && !has_job ? nullptr : &taken_alone;
}

}  // namespace hocket::api
