#include "daemon/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/utf8.hpp"
#include "config/policy_file.hpp"
#include "config/settings.hpp"
#include "coordinator/coordinator.hpp"
#include "trace/reader.hpp"

namespace hocket::daemon {
namespace {

// The list holds at most this many events with other commands than the trace has. Further ones are counted.
constexpr std::size_t most_listed = 100;

// A command that the trace has after the last event.
struct Recorded {
  event::Event command;
  std::vector<std::string_view> missing;  // trace::Record::missing
  std::size_t line;
};

std::string facts_of(const event::Event& command, const std::vector<std::string_view>& without = {}) {
  std::string facts;
  trace::append_facts(command, without, facts);
  return facts;
}

// A coordinator under replay. It compares the facts of the commands after each event. If `lists` is true, it lists the
// events with other commands and continues; otherwise the first difference is an error.
class Replay {
 public:
  Replay(const coordinator::CoordinatorSettings& settings, bool lists) : coordinator_(settings), lists_(lists) {}

  // Replays the next trace file of the same daemon.
  Status run(const std::string& path, trace::Reader& reader) {
    path_ = path;
    while (true) {
      auto record = reader.next();
      if (!record) return record.error();
      if (!record.value()) break;
      trace::Record& r = *record.value();
      if (const auto* lost = std::get_if<event::EventsLost>(&r.event.body)) {
        gap_ = fmt::format(
            "; {} records are missing at line {} of {}, because hocketd's disk was slower than they "
            "came: the replay ends there",
            lost->events, reader.line(), path_);
        return settle(reader.line(), "a gap");
      }
      if (r.direction == trace::Direction::out) {
        recorded_.push_back({std::move(r.event), std::move(r.missing), reader.line()});
        continue;
      }
      const Status agrees = settle(reader.line(), std::string{type_name(r.event.body)} + ", an event in");
      if (!agrees) return agrees;
      take_in(r.event, reader.line());
    }
    // A trace that was cut short may lack the commands of its last event.
    if (reader.was_cut_short()) due_.resize(std::min(due_.size(), recorded_.size()));
    return settle(reader.line(), "the end of the trace");
  }

  // Returns a text about the gap at which the replay has ended; "": there was none.
  const std::string& gap() const { return gap_; }
  std::string agreement() const {
    return fmt::format("{} events and {} commands agree", events_ - std::min(events_, differing_), commands_);
  }
  // Returns the events with other commands, below a line that says how many there are; "" if there are none.
  std::string differences() const {
    if (differing_ == 0) return {};
    const std::size_t more = differing_ - std::min(differing_, most_listed);
    return fmt::format("; {} of {} events lead to other commands now{}{}", differing_, events_, list_,
                       more == 0 ? "" : fmt::format("\n{} more events differ", more));
  }

 private:
  // Gives an event to the coordinator, which returns the commands that are due.
  void take_in(const event::Event& event, std::size_t line) {
    ++events_;
    const std::string& name = event.origin.application;
    if (lists_) {
      event_ = fmt::format("line {}, {}{}", line, type_name(event.body), name.empty() ? "" : " of '" + name + "'");
    }
    if (std::holds_alternative<event::Lost>(event.body)) applications_.erase(event.origin.member);
    const auto& commands = coordinator_.handle(event);
    // The node agent names members so too: by the last WELCOME that was sent to them.
    for (const auto& command : commands) {
      const auto* welcome = std::get_if<event::Welcome>(&command.body);
      if (welcome != nullptr) applications_[command.to] = welcome->application;
    }
    for (const auto& command : commands) {
      const auto known = applications_.find(command.to);
      const event::Origin origin{{}, known == applications_.end() ? std::string{} : known->second, command.to};
      due_.push_back({event.time, origin, command.body});
    }
  }

  // True if the i-th command of the trace and of the coordinator have the same facts, as far as the trace has them.
  bool same(std::size_t i) const {
    const std::vector<std::string_view>& missing = recorded_[i].missing;
    return facts_of(recorded_[i].command, missing) == facts_of(due_[i], missing);
  }

  // Compares the commands of the last event. `next` says what follows them in the trace, in that line.
  Status settle(std::size_t line, const std::string& next) {
    std::size_t equal = 0;
    while (equal < std::min(recorded_.size(), due_.size()) && same(equal)) ++equal;
    commands_ += equal;
    if (equal < std::max(recorded_.size(), due_.size())) {
      if (!lists_) return difference(equal, line, next);
      list(equal);
    }
    recorded_.clear();
    due_.clear();
    return success();
  }

  Error difference(std::size_t at, std::size_t line, const std::string& next) const {
    const bool has = at < recorded_.size();
    return Error{fmt::format("{}, line {}: the trace has {}, the coordinator now commands {}", path_,
                             has ? recorded_[at].line : line, has ? facts_of(recorded_[at].command) : next,
                             at < due_.size() ? facts_of(due_[at]) : "nothing")};
  }

  // Adds the last event to the list, with its commands from the first that differs on.
  void list(std::size_t from) {
    if (++differing_ > most_listed) return;
    list_ += fmt::format("\n{}, {}", path_, event_);
    for (std::size_t i = from; i < recorded_.size(); ++i) {
      list_ += "\n  then " + facts_of(recorded_[i].command, recorded_[i].missing);
    }
    for (std::size_t i = from; i < due_.size(); ++i) list_ += "\n  now  " + facts_of(due_[i]);
  }

  std::string path_;
  coordinator::Coordinator coordinator_;
  bool lists_;
  std::unordered_map<MemberId, std::string> applications_;
  std::string event_;               // the last event, for the list
  std::vector<event::Event> due_;   // commands of the coordinator after it
  std::vector<Recorded> recorded_;  // commands of the trace after it
  std::string list_;
  std::string gap_;
  std::size_t events_ = 0;
  std::size_t commands_ = 0;
  std::size_t differing_ = 0;  // events with other commands
};

// Returns the path of a part that `from` names, or an error if it is missing. The set detects a cycle.
Result<std::string> part_beside(const std::string& from, std::size_t line, const std::string& relation,
                                const std::string& name, std::set<std::string>& seen) {
  const std::string path = trace::present_path((std::filesystem::path{from}.parent_path() / name).string());
  std::error_code ignored;
  if (seen.insert(path).second && std::filesystem::exists(path, ignored)) return path;
  return Error{fmt::format("{}, line {}: the trace {} {}, which does not exist: keep the parts of a trace together",
                           from, line, relation, path)};
}

// Returns the chain of traces that this one continues, the first of all first and this one last.
Result<std::vector<std::string>> parts_of(const std::string& trace, std::set<std::string>& seen) {
  std::vector<std::string> parts{trace};
  seen.insert(trace);
  while (true) {
    const auto reader = trace::Reader::open(parts.front());
    if (!reader) return reader.error();
    const std::string& before = reader.value().header().continues;
    if (before.empty()) return parts;
    auto path = part_beside(parts.front(), 1, "continues", before, seen);
    if (!path) return path.error();
    parts.insert(parts.begin(), std::move(path).value());
  }
}

// True if another version of hocket made the trace. It may have decided otherwise.
bool is_of_another_version(const trace::TraceHeader& header) {
  return header.format != trace::format_version || header.version != HOCKET_VERSION;
}

// Returns the coordinator for a trace with that header, whose path goes into errors.
Result<std::unique_ptr<Replay>> prepare(const std::string& path, const trace::TraceHeader& header,
                                        const std::string& policy_file) {
  const auto wrong = [&path](const Error& error) { return Error{path + ", line 1: " + error.text}; };
  auto settings = config::from_trace(header.settings, header.format);
  if (!settings) return wrong(settings.error());
  std::string& named = settings.value().policy_file;
  if (policy_file.empty() && !named.empty()) {
    return wrong(
        Error{fmt::format("the trace was made with the policy file {}, and a replay runs only a file that you "
                          "name: add --policy-file FILE",
                          printable(named))});
  }
  if (!policy_file.empty() && named.empty()) {
    return wrong(
        Error{fmt::format("the trace was made without a policy file: leave --policy-file {} out", policy_file)});
  }
  named = policy_file;
  const auto prepared = config::with_policy_file(settings.value(), {});
  if (!prepared) return wrong(prepared.error());
  return std::make_unique<Replay>(prepared.value(), is_of_another_version(header));
}

}  // namespace

Result<std::string> replay(const std::string& trace, const std::string& policy_file) {
  std::set<std::string> seen;
  auto chain = parts_of(trace, seen);
  if (!chain) return chain.error();
  std::vector<std::string> parts = std::move(chain).value();
  const std::size_t before = parts.size() - 1;
  std::unique_ptr<Replay> run;
  bool cut_short = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i];
    auto reader = trace::Reader::open(part);
    if (!reader) return reader.error();
    // All parts have one coordinator, so the settings come from the first header.
    if (!run) {
      auto prepared = prepare(part, reader.value().header(), policy_file);
      if (!prepared) return prepared.error();
      run = std::move(prepared).value();
    }
    if (const Status agrees = run->run(part, reader.value()); !agrees) return agrees.error();
    if (!run->gap().empty()) break;
    cut_short = reader.value().was_cut_short();
    const std::string& next = reader.value().continued_by();
    if (next.empty() || i + 1 < parts.size()) continue;
    auto path = part_beside(part, reader.value().line(), "continues in", next, seen);
    if (!path) return path.error();
    parts.push_back(std::move(path).value());
  }
  return fmt::format("{}: {}{}{}{}{}{}", trace, run->agreement(),
                     before == 0 ? ""
                                 : fmt::format(", with those of the {} it continues",
                                               before == 1 ? "trace" : fmt::format("{} traces", before)),
                     cut_short ? "; the last line was cut short" : "",
                     parts.size() == before + 1 ? "" : fmt::format(", in {} parts", parts.size()), run->gap(),
                     run->differences());
}

}  // namespace hocket::daemon
