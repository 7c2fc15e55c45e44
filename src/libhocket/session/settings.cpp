#include "session/settings.hpp"

#include <cmath>
#include <cstdlib>

#include "file_system/target_name.hpp"

namespace hocket::runtime {
namespace {

constexpr double most_seconds = 1e8;  // three years, far below the limit of 64-bit nanoseconds

// Parses a number of seconds from 0 to most_seconds. Returns false, and leaves `value` alone, if the text is none.
bool parse_seconds(const char* text, Duration& value) {
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(seconds) || seconds < 0 || seconds > most_seconds) return false;
  value = from_s(seconds);
  return true;
}

}  // namespace

MemberSettings read_settings(const std::function<const char*(const char*)>& get,
                             const std::function<void(std::string_view)>& complain) {
  MemberSettings settings;
  const auto text = [&](const char* key) {
    const char* value = get(key);
    return std::string(value ? value : "");
  };
  const auto seconds = [&](const char* key, Duration& value) {
    const std::string written = text(key);
    if (!written.empty() && !parse_seconds(written.c_str(), value))
      complain(std::string(key) + "='" + written + "' is not a number of seconds from 0 to 1e8: using " +
               std::to_string(to_s(value)));
  };
  settings.socket = text("HOCKET_SOCKET");
  settings.job = text("HOCKET_JOB");
  settings.name = text("HOCKET_NAME");
  settings.capture = text("HOCKET_CAPTURE");
  seconds("HOCKET_ANSWER_S", settings.answer);
  seconds("HOCKET_MAX_WAIT_S", settings.max_wait);
  seconds("HOCKET_PHASE_GAP_S", settings.phase_gap);
  const std::string events = text("HOCKET_FLOP_COUNTERS");
  if (events == "none")
    settings.flop_events = FlopEvents::none;
  else if (events == "task-clock")
    settings.flop_events = FlopEvents::task_clock;
  else if (!events.empty() && events != "hardware")
    complain("HOCKET_FLOP_COUNTERS='" + events + "' is not one of hardware, none, task-clock: using hardware");
  const std::string io = text("HOCKET_IO");
  if (!io.empty() && io != "mpi" && io != "hocket")
    complain("HOCKET_IO='" + io + "' is neither mpi nor hocket: using mpi");
  if (io == "hocket") settings.io = Io::hocket;
  const auto unless_0 = [&](const char* key) {
    const std::string written = text(key);
    if (!written.empty() && written != "0" && written != "1")
      complain(std::string(key) + "='" + written + "' is neither 0 nor 1: using 1");
    return written != "0";
  };
  if (const auto names = file_system::parse_target_names(text(file_system::target_names_variable)); !names)
    complain(std::string(file_system::target_names_variable) + " is ignored: " + names.error().text);
  settings.coordinate = unless_0("HOCKET_COORDINATE");
  settings.posix = unless_0("HOCKET_POSIX");
  return settings;
}

}  // namespace hocket::runtime
