// What a policy in Python is given: the view as tuples with names, which cannot be changed (docs/write-a-policy.md).
#pragma once

#include "policy/core_policy.hpp"
#include "policy/policy.hpp"
#include "pypolicy/module/python.hpp"

namespace hocket::pypolicy {

// Makes the types. False: an exception is set.
bool make_types();

// While it lives, the view's functions (Application.pace_at and the like) have something to ask.
class Asking {
 public:
  Asking(const model::Cluster& cluster, Time now, Duration uncertainty);
  ~Asking();
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
};

// nullptr: an exception is set.
Ref view_of(const policy::CoreView& view, AppId subject);
Ref view_of(const policy::View& view);
Ref event_of(const event::Event& event);

// The application of such a tuple, or of that name; nullptr: there is none.
const model::Application* application_of(PyObject* object, const model::Cluster& cluster);
// The request of such a tuple; nullptr: it is none, or does not wait for the target.
const model::Request* request_of(PyObject* object, const model::Target& target);

}  // namespace hocket::pypolicy
