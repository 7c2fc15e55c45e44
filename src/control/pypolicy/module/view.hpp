// Converts what a policy sees to Python: the view as immutable named tuples (docs/write-a-policy.md). A policy can
// keep them, but not change the coordinator's state through them.
#pragma once

#include "policy/core_policy.hpp"
#include "policy/policy.hpp"
#include "policy/server_policy.hpp"
#include "pypolicy/module/python.hpp"

namespace hocket::pypolicy {

// Creates the types of the tuples; call it once. False: an exception is set.
bool make_types();

// Makes the functions of the view usable (Application.pace_at and others) for its lifetime. After it they raise an
// exception. Objects do not nest; the cluster must outlive the object.
class ViewScope {
 public:
  ViewScope(const model::Cluster& cluster, Time now, Duration uncertainty);
  ~ViewScope();
  ViewScope(const ViewScope&) = delete;
  ViewScope& operator=(const ViewScope&) = delete;
};

// Return a copy of the state for one decision. nullptr: an exception is set.
Ref view_of(const policy::CoreView& view, AppId subject);
Ref view_of(const policy::View& view);
Ref view_of(const policy::ServersView& view);
Ref event_of(const event::Event& event);

// Returns the application of a tuple or name, or nullptr if the cluster has none such.
const model::Application* application_of(PyObject* object, const model::Cluster& cluster);
// Returns the name of a server that is given by a tuple or name; "" for another object.
std::string server_name_of(PyObject* object);
// Returns the request of a tuple, or nullptr if the object is none or the request does not wait for the target.
const model::Request* request_of(PyObject* object, const policy::View& view);

}  // namespace hocket::pypolicy
