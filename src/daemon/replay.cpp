#include "daemon/replay.hpp"

#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <vector>

#include "config/policy_file.hpp"
#include "config/settings.hpp"
#include "coordinator/coordinator.hpp"
#include "trace/reader.hpp"

namespace hocket::daemon {
namespace {

// Returns the command as a line of the trace: texts are compared, so every field counts.
std::string line_of(const event::Event& command) {
  std::string line;
  trace::append_line(trace::Direction::out, command, line);
  line.pop_back();
  return line;
}

// A coordinator under replay. Commands wait in `due_` until the trace shows them.
class Replay {
 public:
  explicit Replay(const coordinator::Settings& settings) : coordinator_(settings) {}

  // Replays the next trace file of the same daemon.
  Status run(const std::string& path, trace::Reader& reader) {
    path_ = path;
    while (true) {
      auto record = reader.next();
      if (!record) return record.error();
      if (!record.value()) break;
      const trace::Record& r = *record.value();
      const Status agrees = r.direction == trace::Direction::in ? take_in(r.event, reader.line())
                                                                : compare(line_of(r.event), reader.line());
      if (!agrees) return agrees.error();
    }
    // A trace that was cut short may lack the commands of its last event.
    if (!due_.empty() && !reader.was_cut_short()) return differs(reader.line(), "the end of the trace", due_.front());
    return success();
  }

  std::string agreement() const { return fmt::format("{} events and {} commands agree", events_, commands_); }

 private:
  Error differs(std::size_t line, const std::string& expected, const std::string& got) const {
    return Error{
        fmt::format("{}, line {}: the trace has {}, the coordinator now commands {}", path_, line, expected, got)};
  }

  // Gives an event to the coordinator. Commands of the event before must all have been seen by now.
  Status take_in(const event::Event& event, std::size_t line) {
    if (!due_.empty()) return differs(line, std::string{type_name(event.body)} + ", an event in", due_.front());
    ++events_;
    if (std::holds_alternative<event::Lost>(event.body)) applications_.erase(event.origin.member);
    const auto& commands = coordinator_.handle(event);
    // The node agent names members so too: by the last WELCOME that was sent to them.
    for (const auto& command : commands) {
      const auto* welcome = std::get_if<event::Welcome>(&command.body);
      if (welcome != nullptr) applications_[command.to] = welcome->application;
    }
    for (const auto& command : commands) {
      const auto name = applications_.find(command.to);
      const event::Origin origin{{}, name == applications_.end() ? std::string{} : name->second, command.to};
      due_.push_back(line_of({event.time, origin, command.body}));
    }
    return success();
  }

  // Compares a command of the trace with the oldest one that the trace has not shown yet.
  Status compare(const std::string& recorded, std::size_t line) {
    const std::string commanded = due_.empty() ? "nothing" : due_.front();
    if (recorded != commanded) return differs(line, recorded, commanded);
    due_.pop_front();
    ++commands_;
    return success();
  }

  std::string path_;
  coordinator::Coordinator coordinator_;
  std::unordered_map<MemberId, std::string> applications_;
  std::deque<std::string> due_;  // commanded, but not yet seen in the trace
  std::size_t events_ = 0;
  std::size_t commands_ = 0;
};

// Returns the chain of traces that this one continues, the first of all first and this one last. The set detects a
// cycle.
Result<std::vector<std::string>> parts_of(const std::string& trace) {
  std::vector<std::string> parts{trace};
  std::set<std::string> seen{trace};
  while (true) {
    const auto reader = trace::Reader::open(parts.front());
    if (!reader) return reader.error();
    const std::string& before = reader.value().header().continues;
    if (before.empty()) return parts;
    const std::string path = (std::filesystem::path{parts.front()}.parent_path() / before).string();
    std::error_code ignored;
    if (!seen.insert(path).second || !std::filesystem::exists(path, ignored)) {
      return Error{
          fmt::format("{}, line 1: the trace continues {}, which is not there: keep the traces of one "
                      "daemon together",
                      parts.front(), path)};
    }
    parts.insert(parts.begin(), path);
  }
}

}  // namespace

Result<std::string> replay(const std::string& trace) {
  const auto parts = parts_of(trace);
  if (!parts) return parts.error();
  std::optional<Replay> run;
  bool cut_short = false;
  for (const std::string& part : parts.value()) {
    auto reader = trace::Reader::open(part);
    if (!reader) return reader.error();
    // All parts have one coordinator, so the settings come from the first header.
    if (!run) {
      auto settings = config::from_trace(reader.value().header().settings);
      if (!settings) return Error{part + ", line 1: " + settings.error().text};
      const auto prepared = config::with_policy_file(settings.value(), {});
      if (!prepared) return Error{part + ", line 1: " + prepared.error().text};
      run.emplace(prepared.value());
    }
    if (const Status agrees = run->run(part, reader.value()); !agrees) return agrees.error();
    cut_short = reader.value().was_cut_short();
  }
  const std::size_t before = parts.value().size() - 1;
  return fmt::format("{}: {}{}{}", trace, run->agreement(),
                     before == 0 ? ""
                                 : fmt::format(", with those of the {} it continues",
                                               before == 1 ? "trace" : fmt::format("{} traces", before)),
                     cut_short ? "; the last line was cut short" : "");
}

}  // namespace hocket::daemon
