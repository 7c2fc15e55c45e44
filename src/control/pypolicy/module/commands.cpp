#include "pypolicy/module/commands.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/nearest.hpp"
#include "pypolicy/module/view.hpp"

namespace hocket::pypolicy {
namespace {

constexpr double longest_s = 1e9;  // seconds: 30 years

// Reads one command, a dict, and keeps the first problem. Later ones are often consequences of it.
class CommandFields {
 public:
  // `kinds` are the keys that name the command, and `keys` the others that it may have. kind() is empty if it has
  // none of `kinds`.
  CommandFields(PyObject* command, const std::vector<std::string_view>& kinds,
                const std::vector<std::string_view>& keys)
      : command_(command) {
    if (!PyDict_Check(command)) {
      wrong_ = "it is " + shown(command) + ", not a dict";
      return;
    }
    for (const std::string_view one : kinds)
      if (find(one)) kind_ = one;
    PyObject* key = nullptr;
    for (Py_ssize_t i = 0; PyDict_Next(command, &i, &key, nullptr);) {
      const std::string name = as_text(key);
      const auto is_known = [&](const auto& known) { return std::ranges::find(known, name) != known.end(); };
      if (is_known(keys) || name == kind_) continue;
      std::vector<std::string_view> all = keys;
      all.insert(all.end(), kinds.begin(), kinds.end());
      fail("unknown key " + shown(key) + ": did you mean '" + std::string{nearest(name, all)} + "'?");
    }
    if (!kind_.empty()) return;
    std::string names;
    for (const std::string_view one : kinds) names += (names.empty() ? "'" : " or '") + std::string{one} + "'";
    fail("it has no key " + names);
  }

  std::string_view kind() const { return kind_; }
  const std::string& wrong() const { return wrong_; }

  // Returns the application that the key names. Returns nullptr for None, and for an absent or unknown one; an
  // unknown one is a problem.
  const model::Application* application(std::string_view key, const model::Cluster& cluster) {
    PyObject* value = find(key);
    if (!value || value == Py_None) return nullptr;
    const model::Application* found = application_of(value, cluster);
    if (!found) fail("'" + std::string{key} + "' is " + shown(value) + ", which is not an application of the view");
    return found;
  }

  // Returns the whole number of the key, or `otherwise` if the key is absent or wrong.
  std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t otherwise) {
    PyObject* value = find(key);
    if (!value) return otherwise;
    int overflow = 0;
    const long long number = PyLong_Check(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
    const bool good = PyLong_Check(value) && !overflow && number >= least && number <= model::most_processes;
    if (!good)
      fail("'" + std::string{key} + "' is " + shown(value) + ": give a whole number, at least " +
           std::to_string(least));
    return good ? number : otherwise;
  }

  // Returns the whole number of the key, whatever it is: the coordinator checks and explains it. A number that does not
  // fit becomes the nearest one. No value if the key is absent or no whole number, which is a problem.
  std::optional<std::int64_t> any_whole(std::string_view key) {
    PyObject* value = find(key);
    if (!value) return std::nullopt;
    if (!PyLong_Check(value)) {
      fail("'" + std::string{key} + "' is " + shown(value) + ": give a whole number");
      return std::nullopt;
    }
    using Limits = std::numeric_limits<std::int64_t>;
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 ? number : overflow > 0 ? Limits::max() : Limits::min();
  }

  // Returns the seconds of the key; absent, None and wrong values give 0.
  Duration seconds(std::string_view key) {
    PyObject* value = find(key);
    if (!value || value == Py_None) return {};
    const double number = PyFloat_Check(value) || PyLong_Check(value) ? PyFloat_AsDouble(value) : std::nan("");
    PyErr_Clear();
    const bool good = std::isfinite(number) && number >= 0 && number <= longest_s;
    if (!good) fail("'" + std::string{key} + "' is " + shown(value) + ": give seconds, 0 or more");
    return good ? from_s(number) : Duration{};
  }

  std::string words(std::string_view key) {
    PyObject* value = find(key);
    if (value && !PyUnicode_Check(value)) fail("'" + std::string{key} + "' is " + shown(value) + ": give a text");
    return as_text(value);
  }

  // Returns a borrowed reference, or nullptr without an exception.
  PyObject* find(std::string_view key) const {
    const Ref name = text(key);
    PyObject* value = name ? PyDict_GetItemWithError(command_, name.get()) : nullptr;
    if (!value) PyErr_Clear();
    return value;
  }

  void fail(std::string text) {
    if (wrong_.empty()) wrong_ = std::move(text);
  }

 private:
  PyObject* command_;
  std::string_view kind_;
  std::string wrong_;
};

AppId id_of(const model::Application* application) { return application ? application->id : AppId{}; }

// Adds a change of size. The times are predictions of the policy, which the coordinator reports and later compares.
std::string add_resize(CommandFields& fields, const policy::CoreView& view, policy::CoreDecision& decision) {
  policy::CoreChange change;
  const model::Application* application = fields.application("resize", view.cluster);
  if (!application) fields.fail("'resize' is None, which is not an application of the view");
  change.application = id_of(application);
  change.processes = fields.whole("processes", 1, 0);
  if (!fields.find("processes")) fields.fail("it has no 'processes'");
  change.at_iteration = fields.whole("at_iteration", 0, 0);
  change.return_at_iteration = fields.whole("return_at_iteration", 0, 0);
  change.because_of = id_of(fields.application("because_of", view.cluster));
  change.conflict = Time{} + fields.seconds("conflict_s");
  change.overlap = fields.seconds("overlap_s");
  change.start_before = Time{} + fields.seconds("start_before_s");
  change.start_after = Time{} + fields.seconds("start_after_s");
  change.period_after = fields.seconds("period_after_s");
  change.text = fields.words("text");
  // A second change of the same application would contradict the first.
  for (const policy::CoreChange& other : decision.changes)
    if (application && other.application == change.application)
      fields.fail("'" + application->name + "' is resized twice");
  decision.changes.push_back(std::move(change));
  return fields.wrong();
}

// Adds a decision to leave a conflict alone, which the coordinator only reports.
std::string add_leave(CommandFields& fields, const policy::CoreView& view, policy::CoreDecision& decision) {
  policy::LeftAlone left;
  left.application = id_of(fields.application("leave", view.cluster));
  left.because_of = id_of(fields.application("because_of", view.cluster));
  left.conflict = Time{} + fields.seconds("conflict_s");
  left.overlap = fields.seconds("overlap_s");
  left.text = fields.words("text");
  decision.left_alone.push_back(std::move(left));
  return fields.wrong();
}

// Passes each command of the list to `take`, up to the first problem, which is the error.
Status each(PyObject* commands, const std::function<std::string(PyObject*)>& take) {
  if (commands == Py_None) return success();
  if (!PyList_Check(commands) && !PyTuple_Check(commands))
    return Error{"decide returned " + shown(commands) + ", not a list of commands"};
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(commands); ++i) {
    const std::string wrong = take(PySequence_Fast_GET_ITEM(commands, i));
    if (!wrong.empty()) return Error{"command " + std::to_string(i + 1) + " of what decide returned: " + wrong};
  }
  return success();
}

}  // namespace

Result<policy::CoreDecision> core_decision(PyObject* commands, const policy::CoreView& view) {
  static const std::vector<std::string_view> kinds{"resize", "leave"};
  static const std::vector<std::string_view> keys{
      "processes", "at_iteration",   "return_at_iteration", "because_of",     "conflict_s",
      "overlap_s", "start_before_s", "start_after_s",       "period_after_s", "text"};
  policy::CoreDecision decision;
  const Status taken = each(commands, [&](PyObject* command) {
    CommandFields fields(command, kinds, keys);
    if (!fields.wrong().empty()) return fields.wrong();
    return fields.kind() == "resize" ? add_resize(fields, view, decision) : add_leave(fields, view, decision);
  });
  if (!taken) return taken.error();
  return decision;
}

namespace {

// Adds the interruption of a holder of the target.
std::string add_interruption(CommandFields& fields, const policy::View& view, policy::AccessDecision& decision) {
  const AppId id = id_of(fields.application("interrupt", view.cluster));
  const auto is_it = [id](const model::Holder& holder) { return holder.application->id == id; };
  if (fields.wrong().empty() && std::ranges::none_of(view.holders(), is_it)) {
    fields.fail("'interrupt' is not an application of view.target.holders");
  }
  decision.interruptions.push_back(id);
  return fields.wrong();
}

}  // namespace

Result<policy::AccessDecision> access_decision(PyObject* commands, const policy::View& view) {
  policy::AccessDecision decision;
  const Status taken = each(commands, [&](PyObject* command) {
    // A command about access has no key besides its kind.
    CommandFields fields(command, {"grant", "interrupt"}, {});
    if (!fields.wrong().empty()) return fields.wrong();
    if (fields.kind() == "interrupt") return add_interruption(fields, view, decision);
    const model::Request* request = request_of(fields.find("grant"), view);
    if (!request)
      return "'grant' is " + shown(fields.find("grant")) + ", which is not a request of view.target.waiting";
    for (const policy::Grant& other : decision.grants)
      if (other.member == request->member && other.request == request->id) return std::string{"it is granted twice"};
    decision.grants.push_back({request->member, request->id});
    return std::string{};
  });
  if (!taken) return taken.error();
  return decision;
}

namespace {

using policy::ServerChange;

// Adds servers for an application. No server means that it uses all.
void add_assignment(CommandFields& fields, const policy::ServersView& view, ServerChange& change) {
  const model::Application* application = fields.application("assign", view.cluster);
  if (!application) fields.fail("'assign' is None, which is not an application of the view");
  change.application = id_of(application);
  PyObject* servers = fields.find("servers");
  if (servers == nullptr) return fields.fail("it has no 'servers'");
  if (!PyList_Check(servers) && !PyTuple_Check(servers))
    return fields.fail("'servers' is " + shown(servers) + ": give a list of servers or their names");
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(servers); ++i) {
    PyObject* server = PySequence_Fast_GET_ITEM(servers, i);
    change.servers.push_back(server_name_of(server));
    if (change.servers.back().empty()) fields.fail("'servers' has " + shown(server) + ", which is not a server");
  }
}

// Adds settings of the collective I/O of an application. What is not given is as hints and defaults say.
void add_tuning(CommandFields& fields, const policy::ServersView& view, ServerChange& change) {
  const model::Application* application = fields.application("tune", view.cluster);
  if (!application) fields.fail("'tune' is None, which is not an application of the view");
  change.application = id_of(application);
  change.aggregators = fields.any_whole("aggregators");
  change.buffer_bytes = fields.any_whole("buffer_bytes");
  if (fields.find("method")) change.method = fields.words("method");
}

// Adds the weight that the command must have.
void add_weight(CommandFields& fields, ServerChange& change) {
  change.weight = fields.any_whole("weight").value_or(0);
  if (!fields.find("weight")) fields.fail("it has no 'weight'");
}

void add_application_weight(CommandFields& fields, const policy::ServersView& view, ServerChange& change) {
  const model::Application* application = fields.application("weigh_application", view.cluster);
  if (!application) fields.fail("'weigh_application' is None, which is not an application of the view");
  change.application = id_of(application);
  add_weight(fields, change);
}

void add_server(CommandFields& fields, ServerChange& change) {
  PyObject* server = fields.find(fields.kind());
  change.server = server_name_of(server);
  if (change.server.empty())
    fields.fail("'" + std::string{fields.kind()} + "' is " + shown(server) + ", which is not a server or its name");
  if (change.action == ServerChange::Action::weigh) return add_weight(fields, change);
  if (change.action != ServerChange::Action::schedule) return;
  change.scheduler = fields.words("scheduler");
  if (!fields.find("scheduler")) fields.fail("it has no 'scheduler'");
}

// The commands of a servers policy, and the keys that only some of them may have.
using Action = ServerChange::Action;
constexpr std::pair<std::string_view, Action> server_actions[] = {{"set_aside", Action::set_aside},
                                                                  {"drain", Action::drain},
                                                                  {"add", Action::add},
                                                                  {"assign", Action::assign},
                                                                  {"weigh", Action::weigh},
                                                                  {"tune", Action::tune},
                                                                  {"schedule", Action::schedule},
                                                                  {"weigh_application", Action::weigh_application}};
constexpr std::pair<std::string_view, Action> own_keys[] = {
    {"servers", Action::assign},    {"weight", Action::weigh},      {"weight", Action::weigh_application},
    {"aggregators", Action::tune},  {"buffer_bytes", Action::tune}, {"method", Action::tune},
    {"scheduler", Action::schedule}};

// Returns the commands to which the key belongs, "'weigh' or 'weigh_application'".
std::string owners_of(std::string_view key) {
  std::string owners;
  for (const auto& [own, action] : own_keys) {
    if (own != key) continue;
    const auto owner = std::ranges::find(server_actions, action, [](const auto& one) { return one.second; });
    owners += (owners.empty() ? "'" : " or '") + std::string{owner->first} + "'";
  }
  return owners;
}

}  // namespace

Result<policy::ServerDecision> server_decision(PyObject* commands, const policy::ServersView& view) {
  static const std::vector<std::string_view> kinds{"set_aside", "drain", "add",      "assign",
                                                   "weigh",     "tune",  "schedule", "weigh_application"};
  static const std::vector<std::string_view> keys{"servers", "weight",    "aggregators", "buffer_bytes",
                                                  "method",  "scheduler", "text"};
  policy::ServerDecision decision;
  const Status taken = each(commands, [&](PyObject* command) {
    CommandFields fields(command, kinds, keys);
    if (!fields.wrong().empty()) return fields.wrong();
    ServerChange change;
    change.action = std::ranges::find(server_actions, fields.kind(), [](const auto& one) { return one.first; })->second;
    change.text = fields.words("text");
    if (change.action == Action::assign) {
      add_assignment(fields, view, change);
    } else if (change.action == Action::tune) {
      add_tuning(fields, view, change);
    } else if (change.action == Action::weigh_application) {
      add_application_weight(fields, view, change);
    } else {
      add_server(fields, change);
    }
    for (const auto& [key, owner] : own_keys) {
      const bool belongs = std::ranges::find(own_keys, std::pair{key, change.action}) != std::end(own_keys);
      if (!belongs && fields.find(key)) fields.fail("'" + std::string{key} + "' belongs to " + owners_of(key));
    }
    decision.changes.push_back(std::move(change));
    return fields.wrong();
  });
  if (!taken) return taken.error();
  return decision;
}

}  // namespace hocket::pypolicy
