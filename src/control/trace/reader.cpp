#include "trace/reader.hpp"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

namespace hocket::trace {
namespace {

// Returns the settings of a header. Values of other types are left out: a later version may have written them.
event::Properties settings_of(const nlohmann::ordered_json& header) {
  event::Properties settings;
  const auto found = header.find("settings");
  if (found == header.end() || !found->is_object()) return settings;
  for (const auto& [key, value] : found->items()) {
    if (value.is_string()) settings.emplace_back(key, value.get<std::string>());
    if (value.is_boolean()) settings.emplace_back(key, value.get<bool>());
    if (value.is_number_integer()) settings.emplace_back(key, value.get<std::int64_t>());
    if (value.is_number_float()) settings.emplace_back(key, value.get<double>());
  }
  return settings;
}

// Returns the value of a key, or a default: older traces lack keys.
std::string text_in(const nlohmann::ordered_json& header, const char* key) {
  const auto found = header.find(key);
  return found != header.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::int64_t integer_in(const nlohmann::ordered_json& header, const char* key) {
  const auto found = header.find(key);
  return found != header.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace

Error Reader::wrong(const std::string& what) const {
  return Error{path_ + ", line " + std::to_string(line_) + ": " + what};
}

Result<Reader> Reader::open(const std::string& path) {
  Reader reader{path};
  if (!reader.file_.is_open()) {
    return Error{"cannot read the trace " + path + ": " + std::generic_category().message(errno)};
  }
  // A directory can be opened and then reads like an empty file.
  if (std::error_code ignored; std::filesystem::is_directory(reader.path_, ignored)) {
    return Error{"cannot read the trace " + path + ": it is a directory"};
  }
  if (const Status read = reader.read_header(); !read) return read.error();
  return reader;
}

Status Reader::read_header() {
  std::string line;
  file_.next(line);
  line_ = 1;
  if (!file_.error().empty()) return wrong("the file is damaged: " + file_.error());
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, false);
  // Any other file is refused before its lines are read.
  if (json.is_discarded() || !json.is_object() || !json.contains("hocket_trace")) {
    return wrong("not a trace of hocket: its first line must be a header with 'hocket_trace'");
  }
  const std::int64_t version = integer_in(json, "hocket_trace");
  if (version < oldest_version || version > format_version) {
    return wrong("a trace of version " + std::to_string(version) + "; this hocket reads versions " +
                 std::to_string(oldest_version) + " to " + std::to_string(format_version));
  }
  header_ = {text_in(json, "version"),
             text_in(json, "node"),
             integer_in(json, "start_unix_ns"),
             time_from_ns(integer_in(json, "start_ns")),
             settings_of(json),
             text_in(json, "continues"),
             version};
  return success();
}

Result<std::optional<Record>> Reader::next() {
  std::string line;
  const bool any = file_.next(line);
  // A line before the damage may be incomplete, but no writer has cut it short.
  if (!file_.error().empty()) return wrong("the file is damaged after this line: " + file_.error());
  if (!any) return std::optional<Record>{};
  ++line_;
  const bool whole = file_.was_whole();
  if (whole && line.starts_with("{\"continued_by\"")) {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (json.is_object()) continued_by_ = text_in(json, "continued_by");
    if (continued_by_.empty()) return wrong("'continued_by' names no file");
    // The sum that shows damage stands at the end of a compressed file.
    file_.next(line);
    if (!file_.error().empty()) return wrong("the file is damaged after this line: " + file_.error());
    return std::optional<Record>{};
  }
  auto record = parse_line(line);
  if (record) return std::optional{std::move(record).value()};
  // A complete line that cannot be parsed is an error; an incomplete one is the end of the trace.
  if (whole) return wrong(record.error().text);
  cut_short_ = true;
  return std::optional<Record>{};
}

}  // namespace hocket::trace
