#include "daemon/explaining.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "explain/explain.hpp"
#include "trace/line.hpp"

namespace hocket::daemon {
namespace {

// Returns the whole number of a key; 0 if there is none.
std::int64_t integer_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

explain::Consequences consequences_of(const nlohmann::json& line, Time decided) {
  explain::Consequences consequences;
  consequences.decided = decided;
  consequences.until = time_from_ns(integer_of(line, "until_ns"));
  const auto stopped = line.find("stopped_ns");
  if (stopped == line.end() || !stopped->is_array()) return consequences;
  for (const nlohmann::json& one : *stopped) {
    if (one.is_number_integer()) consequences.stopped.emplace_back(one.get<std::int64_t>());
  }
  return consequences;
}

// Appends a member of a JSON object; the first one opens the object.
void append_member(std::string_view key, std::string_view words, std::string& out) {
  out += out.empty() ? "{" : ", ";
  trace::append_json(key, out);
  out += ": ";
  trace::append_json(words, out);
}

// Returns the sentences of a decision. `line` has the keys that are none of the event.
std::string told(const event::Decision& decision, Time decided, const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);  // it was parsed as an event already
  std::string out;
  append_member("heading", explain::heading(decision), out);
  append_member("sentence", explain::sentence(decision), out);
  out += ", \"lines\": [";
  const char* between = "";
  const Time zero = time_from_ns(integer_of(json, "zero_ns"));
  for (const explain::Line& one : explain::lines(decision, consequences_of(json, decided), zero)) {
    out.append(between).append("[");
    trace::append_json(one.about, out);
    out += ", ";
    trace::append_json(one.words, out);
    out += "]";
    between = ", ";
  }
  return out + "]}";
}

std::string told(const event::Outcome& outcome) {
  std::string out;
  append_member("subject", explain::subject(outcome), out);
  append_member("brief", explain::brief(outcome), out);
  append_member("sentence", explain::sentence(outcome), out);
  return out + "}";
}

}  // namespace

Status explain_lines(std::istream& in, std::ostream& out) {
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const auto wrong = [number](const std::string& what) {
      return Error{"standard input, line " + std::to_string(number) + ": " + what};
    };
    const auto record = trace::parse_line(line);
    if (!record) return wrong(record.error().text);
    const event::Event& event = record.value().event;
    if (const auto* decision = std::get_if<event::Decision>(&event.body)) {
      out << told(*decision, event.time, line) << '\n';
    } else if (const auto* outcome = std::get_if<event::Outcome>(&event.body)) {
      out << told(*outcome) << '\n';
    } else {
      return wrong("'" + std::string{type_name(event.body)} + "' has no sentences: give a DECISION or an OUTCOME");
    }
  }
  return success();
}

}  // namespace hocket::daemon
