// The entry of the module: it starts the interpreter, runs the policy's file once, and calls its `decide` for every
// decision. Everything happens on the thread that loaded the module.
#include <array>

#include "policy/combination.hpp"
#include "pypolicy/module.hpp"
#include "pypolicy/module/commands.hpp"
#include "pypolicy/module/python.hpp"
#include "pypolicy/module/time_limit.hpp"
#include "pypolicy/module/view.hpp"

namespace hocket::pypolicy {
namespace {

constexpr Duration run_limit = std::chrono::seconds{10};  // time limit of the file itself, which may import much

// Name under which Python knows the policy's file.
constexpr const char* module_name = "hocket_policy_file";

// The state of the policy in force. It is global because a record of a policy holds a plain function, as built-in
// policies need no state.
struct InForce {
  std::string path;
  std::string name;
  std::string summary;
  MessageSink say;
  std::string said;
  PyObject* decide = nullptr;
  std::int64_t line = 0;  // first line of decide
  policy::Policy access{};
  policy::CorePolicy core{};
  policy::ServerPolicy servers{};
};
InForce* in_force = nullptr;

// ---- mistakes in the file ----------------------------------------------------------------------------------------

std::string first_line(const std::string& text) { return text.substr(0, std::min<std::size_t>(text.find('\n'), 300)); }

// Returns the last line of the file that the exception passed through, or 0 if there is none. A syntax error has no
// traceback into the file, but a line of its own.
std::int64_t line_in(const std::string& path, PyObject* exception) {
  std::int64_t line = 0;
  for (Ref at = attribute(exception, "__traceback__"); at && at.get() != Py_None; at = attribute(at.get(), "tb_next")) {
    const Ref frame = attribute(at.get(), "tb_frame");
    const Ref code = frame ? attribute(frame.get(), "f_code") : nullptr;
    const Ref file = code ? attribute(code.get(), "co_filename") : nullptr;
    const Ref number = attribute(at.get(), "tb_lineno");
    if (file && number && as_text(file.get()) == path) line = PyLong_AsLongLong(number.get());
  }
  if (line == 0 && PyObject_IsInstance(exception, PyExc_SyntaxError) == 1) {
    const Ref number = attribute(exception, "lineno");
    if (number && PyLong_Check(number.get())) line = PyLong_AsLongLong(number.get());
  }
  PyErr_Clear();
  return line;
}

std::string at(const std::string& path, std::int64_t line) {
  return line > 0 ? path + ":" + std::to_string(line) : path;
}

// Takes the exception that is set and returns it as one line. `otherwise` is the line to name if the exception has
// none.
std::string take_exception(const std::string& path, std::int64_t otherwise) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref owned[] = {Ref{type}, Ref{value}, Ref{trace}};
  if (!value) return at(path, otherwise) + ": unknown exception";
  if (trace) PyException_SetTraceback(value, trace);
  const std::int64_t line = line_in(path, value);
  const Ref words{PyObject_Str(value)};
  if (!words) PyErr_Clear();
  const std::string message = words ? as_text(words.get()) : "";
  return at(path, line > 0 ? line : otherwise) + ": " +
         first_line(std::string{Py_TYPE(value)->tp_name} + (message.empty() ? "" : ": " + message));
}

// Reports a mistake. A policy that fails at every decision would fill the log with the same line.
void say(const std::string& line) {
  if (line == in_force->said) return;
  in_force->said = line;
  if (in_force->say) in_force->say(line);
}

// ---- decisions ---------------------------------------------------------------------------------------------------

// Returns the result of decide, or nullptr if it failed; the failure is reported.
Ref call(const Ref& view, const event::Event& event) {
  const Ref told = view ? event_of(event) : nullptr;
  Ref result;
  if (told) {
    const TimeLimit limit(call_limit);
    result.reset(PyObject_CallFunctionObjArgs(in_force->decide, view.get(), told.get(), nullptr));
  }
  if (!result) say(take_exception(in_force->path, in_force->line));
  return result;
}

// Decides about cores. A failure decides nothing, so the present allocation stays.
policy::CoreDecision decide_cores(const policy::CoreView& view, const event::Event& event, AppId subject) {
  const ViewScope asking(view.cluster, view.now, view.settings.uncertainty);
  const Ref result = call(view_of(view, subject), event);
  if (!result) return {};
  auto decision = core_decision(result.get(), view);
  if (decision) return std::move(decision).value();
  say(at(in_force->path, in_force->line) + ": " + decision.error().text);
  return {};
}

// Decides about access. A failure is decided by fcfs, because an application that is never granted would wait for
// ever.
policy::AccessDecision decide_access(const policy::View& view, const event::Event& event) {
  const ViewScope asking(view.cluster, view.now, Duration{-1});
  const Ref result = call(view_of(view), event);
  if (!result) return policy::fcfs.decide(view, event);
  auto decision = access_decision(result.get(), view);
  if (decision) return std::move(decision).value();
  say(at(in_force->path, in_force->line) + ": " + decision.error().text);
  return policy::fcfs.decide(view, event);
}

// Decides about servers. A failure changes nothing.
policy::ServerDecision decide_servers(const policy::ServersView& view, const event::Event& event) {
  const ViewScope asking(view.cluster, view.now, Duration{-1});
  const Ref result = call(view_of(view), event);
  if (!result) return {};
  auto decision = server_decision(result.get(), view);
  if (decision) return std::move(decision).value();
  say(at(in_force->path, in_force->line) + ": " + decision.error().text);
  return {};
}

// ---- the start ---------------------------------------------------------------------------------------------------

// Starts an isolated interpreter with a fixed hash seed. The environment has no influence, and sets iterate in the
// same order in every run. So a replay makes the same decisions. Returns "" or what is wrong.
std::string start_interpreter() {
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  config.use_hash_seed = 1;
  config.hash_seed = 0;
  config.write_bytecode = 0;
  const PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) return status.err_msg ? status.err_msg : "unknown reason";
  // A policy's print() goes to stderr, because tools read what the program writes to stdout.
  PySys_SetObject("stdout", PySys_GetObject("stderr"));
  return make_types() && prepare_time_limits() ? std::string{} : take_exception("hocket-pypolicy", 0);
}

// Returns the digest in hexadecimal. Python computes it, so the module needs no other library.
std::string sha256_of(const std::string& bytes) {
  const Ref hashlib{PyImport_ImportModule("hashlib")};
  const Ref data{PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()))};
  const Ref hash{hashlib && data ? PyObject_CallMethod(hashlib.get(), "sha256", "O", data.get()) : nullptr};
  const Ref digest{hash ? PyObject_CallMethod(hash.get(), "hexdigest", nullptr) : nullptr};
  return as_text(digest.get());
}

// True for a name of small letters, digits and '-', so that '+' can join it to other names.
bool is_name(const std::string& name) {
  constexpr std::size_t longest = 64;
  return !name.empty() && name.size() <= longest && name != "none" &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

// Returns the policy's record after the file has run. The error says what is wrong, without the path.
Result<policy::Loaded> record_of(PyObject* module, InForce& policy) {
  const auto words = [&](const char* name) {
    const Ref value = attribute(module, name);
    return as_text(value.get());
  };
  policy.name = words("NAME");
  if (!is_name(policy.name))
    return Error{"it defines no NAME: give one of lower-case letters, digits and '-', e.g. NAME = \"mine\""};
  // A built-in name would make a trace ambiguous.
  if (policy::parse_combination(policy.name))
    return Error{"NAME is '" + policy.name + "', which is built in: choose another"};
  Ref decide = attribute(module, "decide");
  if (!decide || !PyCallable_Check(decide.get())) return Error{"it defines no function decide(view, event)"};
  const Ref code = attribute(decide.get(), "__code__");
  const Ref line = code ? attribute(code.get(), "co_firstlineno") : nullptr;
  policy.line = line ? PyLong_AsLongLong(line.get()) : 0;
  policy.decide = decide.release();
  policy.summary = first_line(words("__doc__"));
  if (policy.summary.empty()) policy.summary = "of " + policy.path;
  const std::string kind = words("KIND");
  if (kind == "access") {
    policy.access = {policy.name, policy.summary, decide_access};
    return policy::Loaded{&policy.access, nullptr, nullptr};
  }
  if (kind == "servers") {
    policy.servers = {policy.name, policy.summary, decide_servers};
    return policy::Loaded{nullptr, nullptr, &policy.servers};
  }
  if (kind != "interference" && kind != "sharing")
    return Error{"KIND is '" + kind + R"(': give KIND = "access", "interference", "sharing" or "servers")"};
  policy.core = {policy.name, policy.summary,
                 kind == "sharing" ? policy::CoreKind::sharing : policy::CoreKind::interference, decide_cores};
  return policy::Loaded{nullptr, &policy.core, nullptr};
}

Result<PolicyFile> run(const PolicySource& source, MessageSink say) {
  const std::string& path = source.path;
  // The compiler would stop at a zero byte, and the rest of the file would be hashed but not run.
  if (source.text.find('\0') != std::string::npos) return Error{path + ": it contains a zero byte: it is no Python"};
  static const std::string not_started = start_interpreter();
  if (!not_started.empty()) return Error{path + ": the Python interpreter cannot start: " + not_started};
  const std::string sha256 = sha256_of(source.text);
  // A trace names the digest of its policy. Another file would give other decisions and make a replay meaningless.
  if (!source.expected_sha256.empty() && source.expected_sha256 != sha256) {
    return Error{path + " has SHA-256 " + sha256 + ", not " + source.expected_sha256 +
                 ": it was changed since; use the file as it was"};
  }
  Ref module;
  if (PyDict_DelItemString(PyImport_GetModuleDict(), module_name) != 0) PyErr_Clear();  // module of an earlier file
  {
    const TimeLimit limit(run_limit);
    // The time limit covers the whole file, since its imports may do anything.
    const Ref code{Py_CompileString(source.text.c_str(), path.c_str(), Py_file_input)};
    if (code) module.reset(PyImport_ExecCodeModuleEx(module_name, code.get(), path.c_str()));
  }
  if (!module) return Error{take_exception(path, 0)};
  auto policy = std::make_unique<InForce>();
  policy->path = path;
  policy->say = std::move(say);
  const auto record = record_of(module.get(), *policy);
  if (!record) return Error{path + ": " + record.error().text};
  in_force = policy.release();  // never freed: traces and decisions refer to its record until the process ends
  return PolicyFile{record.value(), path, sha256};
}

}  // namespace
}  // namespace hocket::pypolicy

extern "C" __attribute__((visibility("default"))) void hocket_pypolicy_run_file(
    const hocket::pypolicy::PolicySource& source, hocket::pypolicy::MessageSink say,
    hocket::Result<hocket::pypolicy::PolicyFile>& result) {
  result = hocket::pypolicy::run(source, std::move(say));
}
