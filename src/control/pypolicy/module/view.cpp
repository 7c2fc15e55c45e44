#include "pypolicy/module/view.hpp"

#include <algorithm>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "event/properties.hpp"
#include "model/prediction.hpp"

namespace hocket::pypolicy {
namespace {

// ---- types -------------------------------------------------------------------------------------------------------

PyTypeObject *phase_type, *point_type, *pace_type, *application_type, *request_type, *target_type, *view_type,
    *server_type, *servers_view_type, *assigned_type, *tuned_type;

// The field names are the interface for policies, described in docs/write-a-policy.md. The functions application_of
// and request_of read some fields by position.
constexpr const char* doc = nullptr;
PyStructSequence_Field phase_fields[] = {{"start_s", doc}, {"duration_s", doc}, {"uncertainty_s", doc},
                                         {"bytes", doc},   {"target", doc},     {}};
PyStructSequence_Field point_fields[] = {{"processes", doc}, {"iteration_s", doc}, {"io_s", doc}, {}};
PyStructSequence_Field pace_fields[] = {{"iterations", doc}, {"compute_s", doc}, {"io_s", doc},
                                        {"period_s", doc},   {"io_ratio", doc},  {}};
PyStructSequence_Field application_fields[] = {{"id", doc},
                                               {"name", doc},
                                               {"program", doc},
                                               {"node", doc},
                                               {"processes", doc},
                                               {"malleable", doc},
                                               {"iteration", doc},
                                               {"resizing_to", doc},
                                               {"original", doc},
                                               {"state", doc},
                                               {"target", doc},
                                               {"phases", doc},
                                               {"period_s", doc},
                                               {"period_spread_s", doc},
                                               {"io_s", doc},
                                               {"io_spread_s", doc},
                                               {"io_ratio", doc},
                                               {"waited_s", doc},
                                               {"flop_per_iteration", doc},
                                               {"curve", doc},
                                               {"next_phases", doc},
                                               {"pace_at", doc},
                                               {"iteration_s_at", doc},
                                               {"io_since_s", doc},
                                               {"interruptions", doc},
                                               {"files", doc},
                                               {"rounds", doc},
                                               {"bytes_per_round", doc},
                                               {"info", doc},
                                               {}};
PyStructSequence_Field request_fields[] = {{"application", doc}, {"bytes", doc}, {"since_s", doc},
                                           {"member", doc},      {"id", doc},    {"paused", doc},
                                           {"left_s", doc},      {"parts", doc}, {}};
PyStructSequence_Field target_fields[] = {{"name", doc},    {"holders", doc},      {"waiting", doc},
                                          {"pausing", doc}, {"left_s", doc},       {"stop_s", doc},
                                          {"parts", doc},   {"holder_parts", doc}, {}};
PyStructSequence_Field view_fields[] = {{"now_s", doc},
                                        {"applications", doc},
                                        {"subject", doc},
                                        {"target", doc},
                                        {"cores", doc},
                                        {"cores_free", doc},
                                        {"objective", doc},
                                        {"least_gain", doc},
                                        {"uncertainty_s", doc},
                                        {"reconfiguration_s", doc},
                                        {}};

PyStructSequence_Field server_fields[] = {{"name", doc},
                                          {"state", doc},
                                          {"directory", doc},
                                          {"write_behind", doc},
                                          {"queue", doc},
                                          {"held_bytes", doc},
                                          {"operations_per_s", doc},
                                          {"bytes_per_s", doc},
                                          {"busy_s", doc},
                                          {"service_s", doc},
                                          {"slow", doc},
                                          {"weight", doc},
                                          {"scheduler", doc},
                                          {"forward_queue", doc},
                                          {}};
PyStructSequence_Field tuned_fields[] = {{"application", doc}, {"aggregators", doc},      {"buffer_bytes", doc},
                                         {"method", doc},      {"used_aggregators", doc}, {"used_buffer_bytes", doc},
                                         {"used_method", doc}, {"hinted", doc},           {}};
PyStructSequence_Field assigned_fields[] = {{"application", doc}, {"servers", doc}, {"by_hand", doc},
                                            {"epoch", doc},       {"adopted", doc}, {}};
PyStructSequence_Field servers_view_fields[] = {{"now_s", doc},    {"applications", doc}, {"servers", doc},
                                                {"assigned", doc}, {"tuned", doc},        {}};

// Creates a type of named tuples from the fields, which end with an empty one.
bool make_type(PyTypeObject*& type, const char* name, PyStructSequence_Field* fields) {
  int count = 0;
  while (fields[count].name) ++count;
  PyStructSequence_Desc description{name, nullptr, fields, count};
  type = PyStructSequence_NewType(&description);
  return type != nullptr;
}

// Returns a tuple of that type with these items, one for each field. An item that is nullptr makes the result
// nullptr.
template <std::size_t Count>
Ref make(PyTypeObject* type, std::array<Ref, Count> items) {
  Ref made{PyStructSequence_New(type)};
  if (!made) return made;
  Py_ssize_t i = 0;
  for (Ref& item : items) {
    if (!item) return nullptr;
    PyStructSequence_SetItem(made.get(), i++, item.release());
  }
  return made;
}

template <class... Items>
Ref make(PyTypeObject* type, Items... items) {
  return make(type, std::array<Ref, sizeof...(Items)>{std::move(items)...});
}

// Converts a container to a tuple; `convert` returns one owned reference.
template <class List, class Convert>
Ref tuple_of(const List& list, Convert&& convert) {
  Ref tuple{PyTuple_New(static_cast<Py_ssize_t>(list.size()))};
  Py_ssize_t i = 0;
  for (const auto& one : list) {
    Ref item = tuple ? convert(one) : nullptr;
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i++, item.release());
  }
  return tuple;
}

Ref seconds(Duration duration) { return number(to_s(duration)); }
Ref seconds(Time time) { return seconds(time - Time{}); }

// ---- functions of an application ---------------------------------------------------------------------------------

// The state that functions of the view refer to, while a decision is made.
struct ViewContext {
  const model::Cluster* cluster = nullptr;
  Time now{};
  Duration uncertainty{};
};
ViewContext asked;

// Returns the application that a function is bound to, or sets an exception.
const model::Application* subject_of(PyObject* id) {
  const model::Application* found = asked.cluster ? asked.cluster->find(AppId{PyLong_AsUnsignedLongLong(id)}) : nullptr;
  if (!found) PyErr_SetString(PyExc_RuntimeError, "the view is valid only until decide returns: do not keep it");
  return found;
}

// Returns the number if it is whole and from 1 to `most`, or sets an exception.
std::optional<std::int64_t> count_of(PyObject* object, std::int64_t most, const char* what) {
  int overflow = 0;
  const long long count = PyLong_Check(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
  if (!overflow && count >= 1 && count <= most) return count;
  PyErr_Format(PyExc_ValueError, "%s must be a whole number from 1 to %lld, not %R", what, static_cast<long long>(most),
               object);
  return std::nullopt;
}

// Functions of an application. Each is bound to the application's id instead of a pointer, because a policy may keep
// it until the application has left.
PyObject* next_phases(PyObject* id, PyObject* argument) {
  constexpr std::int64_t most = 1000;
  const model::Application* application = subject_of(id);
  const auto count = application ? count_of(argument, most, "the number of phases") : std::nullopt;
  if (!count) return nullptr;
  const auto phases = model::next_phases(*application, asked.now, asked.uncertainty, static_cast<std::size_t>(*count));
  return tuple_of(phases,
                  [](const model::PredictedPhase& phase) {
                    return make(phase_type, seconds(phase.start), seconds(phase.duration), seconds(phase.uncertainty),
                                number(phase.bytes), text(phase.target));
                  })
      .release();
}

PyObject* pace_at(PyObject* id, PyObject* argument) {
  const model::Application* application = subject_of(id);
  const auto processes = application ? count_of(argument, model::most_processes, "processes") : std::nullopt;
  if (!processes) return nullptr;
  const auto pace = model::pace(*application, *processes);
  if (!pace) Py_RETURN_NONE;
  return make(pace_type, number(pace->iterations), number(pace->compute.value), number(pace->io.value),
              number(pace->period_s()), number(pace->io_ratio()))
      .release();
}

PyObject* iteration_s_at(PyObject* id, PyObject* argument) {
  const model::Application* application = subject_of(id);
  const auto processes = application ? count_of(argument, model::most_processes, "processes") : std::nullopt;
  if (!processes) return nullptr;
  if (application->curve.empty()) Py_RETURN_NONE;
  return number(application->curve.iteration(*processes).value).release();
}

PyMethodDef next_phases_method{"next_phases", next_phases, METH_O, nullptr};
PyMethodDef pace_at_method{"pace_at", pace_at, METH_O, nullptr};
PyMethodDef iteration_s_at_method{"iteration_s_at", iteration_s_at, METH_O, nullptr};

Ref bound(PyMethodDef& method, AppId application) {
  const Ref id{PyLong_FromUnsignedLongLong(application.value)};
  return id ? Ref{PyCFunction_New(&method, id.get())} : nullptr;
}

// ---- the state ---------------------------------------------------------------------------------------------------

Ref point(const model::CurvePoint& at) {
  return make(point_type, number(at.processes), number(at.iteration_s), number(at.io_s));
}

// The order of the items is that of application_fields.
Ref application(const model::Application& a) {
  const model::MeanSpread period = a.history.period();
  const model::MeanSpread io = a.history.duration();
  return make(application_type, number(static_cast<std::int64_t>(a.id.value)), text(a.name), text(a.program),
              text(a.node), number(a.computing_processes()), truth(a.malleability.malleable),
              number(a.malleability.iteration), number(a.malleability.resizing_to), number(a.expansion.original),
              text(name_of(a.activity)), text(a.target), number(a.history.phases()), seconds(period.mean),
              seconds(period.spread), seconds(io.mean), seconds(io.spread), number(a.history.io_ratio()),
              seconds(a.waited_until(asked.now)), number(a.flop_per_iteration), tuple_of(a.curve.points(), point),
              bound(next_phases_method, a.id), bound(pace_at_method, a.id), bound(iteration_s_at_method, a.id),
              seconds(a.demand.since), number(a.demand.interruptions), number(a.demand.files), number(a.demand.rounds),
              number(a.demand.bytes_per_round), text(a.demand.info));
}

Ref applications(const model::Cluster& cluster) {
  return tuple_of(cluster.applications(), [](const auto& entry) { return application(entry.second); });
}

Ref application_or_none(const model::Application* found) { return found ? application(*found) : none(); }

// Returns the seconds of I/O that the application has left at the target.
Ref left_of(const model::Application* application, const model::Target& target) {
  return application ? number(model::work_of(*application, target).left_s) : none();
}

// Returns the seconds until the application can stop: as announced, else as measured, else None.
Ref stop_of(const model::Application& application, const model::Target& target) {
  if (const auto announced = model::announced_stop_s(application, target)) return number(*announced);
  return application.io.stop_s > 0 ? number(application.io.stop_s) : none();
}

// Returns the names of the parts; an empty tuple for the whole target.
Ref parts_of(const model::PartSet& parts, const model::Target& target) {
  return tuple_of(target.part_numbers.names_of(parts), [](const std::string& name) { return text(name); });
}

Ref request(const model::Request& one, const model::Target& target, const model::Cluster& cluster) {
  const model::Application* application = cluster.find(one.application);
  return make(request_type, application_or_none(application), number(one.bytes), seconds(one.since),
              number(static_cast<std::int64_t>(one.member.value)), number(static_cast<std::int64_t>(one.id.value)),
              truth(one.paused), left_of(application, target), parts_of(one.parts, target));
}

// Makes the target of the view, with the holders and requests that the decision is about.
Ref target(const policy::View& view) {
  const model::Target& of = view.target;
  std::vector<const model::Holder*> holders;
  for (const model::Holder& holder : view.holders()) holders.push_back(&holder);
  std::vector<const model::Request*> waiting;
  for (const model::Request& one : view.waiting()) waiting.push_back(&one);
  return make(target_type, text(of.name),
              tuple_of(holders, [](const model::Holder* holder) { return application_or_none(holder->application); }),
              tuple_of(waiting, [&](const model::Request* one) { return request(*one, of, view.cluster); }),
              truth(std::ranges::any_of(view.holders(), &model::Holder::pausing)),
              tuple_of(holders, [&](const model::Holder* holder) { return left_of(holder->application, of); }),
              tuple_of(holders, [&](const model::Holder* holder) { return stop_of(*holder->application, of); }),
              parts_of(view.parts, of),
              tuple_of(holders, [&](const model::Holder* holder) { return parts_of(holder->parts, of); }));
}

// The order of the items is that of server_fields.
Ref server(const policy::ServerStatus& one) {
  return make(server_type, text(one.name), text(one.state), text(one.directory), truth(one.write_behind),
              number(one.queue), number(one.held_bytes), number(one.operations_per_s), number(one.bytes_per_s),
              seconds(one.busy), seconds(one.last_service), truth(one.slow.has_value()),
              number(std::int64_t{one.weight}), text(one.scheduler), number(one.forward_queue));
}

Ref value_of(const event::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return number(*whole);
  if (const auto* real = std::get_if<double>(&value)) return number(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return truth(*flag);
  return text(std::get<std::string>(value));
}

// The type of each kind of event, created at its first event. Python keeps pointers to the names, so the map owns
// them.
struct EventType {
  std::vector<std::string> names;
  PyTypeObject* type = nullptr;
};
std::map<std::string, EventType, std::less<>> event_types;

PyTypeObject* event_type_of(const event::Event& event, const event::Properties& properties) {
  EventType& known = event_types[std::string{type_name(event.body)}];
  if (known.type) return known.type;
  known.names.clear();
  known.names.push_back("hocket." + std::string{type_name(event.body)});
  for (const auto& [key, value] : properties) known.names.push_back(key);
  std::vector<PyStructSequence_Field> fields;
  for (std::size_t i = 1; i < known.names.size(); ++i) fields.push_back({known.names[i].c_str(), doc});
  fields.push_back({});
  make_type(known.type, known.names.front().c_str(), fields.data());
  return known.type;
}

// Returns an unsigned field of a tuple; a field that is no number gives some other value, which no id equals.
std::uint64_t field(PyObject* tuple, Py_ssize_t i) {
  const std::uint64_t value = PyLong_AsUnsignedLongLong(PyStructSequence_GetItem(tuple, i));
  PyErr_Clear();
  return value;
}

}  // namespace

bool make_types() {
  return make_type(phase_type, "hocket.Phase", phase_fields) && make_type(point_type, "hocket.Point", point_fields) &&
         make_type(pace_type, "hocket.Pace", pace_fields) &&
         make_type(application_type, "hocket.Application", application_fields) &&
         make_type(request_type, "hocket.Request", request_fields) &&
         make_type(target_type, "hocket.Target", target_fields) && make_type(view_type, "hocket.View", view_fields) &&
         make_type(server_type, "hocket.Server", server_fields) &&
         make_type(assigned_type, "hocket.Assigned", assigned_fields) &&
         make_type(tuned_type, "hocket.Tuned", tuned_fields) &&
         make_type(servers_view_type, "hocket.ServersView", servers_view_fields);
}

ViewScope::ViewScope(const model::Cluster& cluster, Time now, Duration uncertainty) {
  asked = {&cluster, now, uncertainty};
}
ViewScope::~ViewScope() { asked = {}; }

Ref view_of(const policy::CoreView& view, AppId subject) {
  const policy::CoreSettings& settings = view.settings;
  return make(view_type, seconds(view.now), applications(view.cluster), application_or_none(view.cluster.find(subject)),
              none(), number(view.cores.total()), number(view.free()),
              text(settings.objective == policy::Objective::flops ? "flops" : "iterations"),
              number(settings.least_gain), seconds(settings.uncertainty), seconds(settings.reconfiguration));
}

// A policy for access sees a target and no cores.
Ref view_of(const policy::View& view) {
  return make(view_type, seconds(view.now), applications(view.cluster), none(), target(view), none(), none(), none(),
              none(), none(), none());
}

Ref view_of(const policy::ServersView& view) {
  const auto assigned = [&](const policy::AssignedServers& one) {
    return make(assigned_type, application_or_none(view.cluster.find(one.application)), tuple_of(one.servers, text),
                truth(one.by_hand), number(one.epoch), number(one.adopted));
  };
  const auto tuned = [&](const policy::TunedApplication& one) {
    return make(tuned_type, application_or_none(view.cluster.find(one.application)), number(one.wanted.aggregators),
                number(one.wanted.buffer_bytes), text(one.wanted.method), number(one.used.aggregators),
                number(one.used.buffer_bytes), text(one.used.method), text(one.hinted));
  };
  return make(servers_view_type, seconds(view.now), applications(view.cluster), tuple_of(view.servers, server),
              tuple_of(view.assigned, assigned), tuple_of(view.tuned, tuned));
}

Ref event_of(const event::Event& event) {
  const event::Properties properties = event::properties_of(event);
  PyTypeObject* type = event_type_of(event, properties);
  Ref made{type ? PyStructSequence_New(type) : nullptr};
  if (!made) return made;
  Py_ssize_t i = 0;
  for (const auto& [key, value] : properties) {
    Ref item = value_of(value);
    if (!item) return nullptr;
    PyStructSequence_SetItem(made.get(), i++, item.release());
  }
  return made;
}

const model::Application* application_of(PyObject* object, const model::Cluster& cluster) {
  if (Py_IS_TYPE(object, application_type)) return cluster.find(AppId{field(object, 0)});
  const std::string name = as_text(object);
  for (const auto& [id, one] : cluster.applications())
    if (!name.empty() && one.name == name) return &one;
  return nullptr;
}

std::string server_name_of(PyObject* object) {
  const bool is_tuple = object != nullptr && Py_IS_TYPE(object, server_type);
  return as_text(is_tuple ? PyStructSequence_GetItem(object, 0) : object);
}

const model::Request* request_of(PyObject* object, const policy::View& view) {
  if (!Py_IS_TYPE(object, request_type)) return nullptr;
  for (const model::Request& one : view.waiting())
    if (one.member.value == field(object, 3) && one.id.value == field(object, 4)) return &one;
  return nullptr;
}

}  // namespace hocket::pypolicy
