// Python's C API with ownership as a type, and values across.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>
#include <string_view>

namespace hocket::pypolicy {

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
// A reference that is ours. nullptr: an exception is set.
using Ref = std::unique_ptr<PyObject, Release>;

inline Ref share(PyObject* borrowed) { return Ref{Py_NewRef(borrowed)}; }
inline Ref text(std::string_view value) {
  return Ref{PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace")};
}
inline Ref number(std::int64_t value) { return Ref{PyLong_FromLongLong(value)}; }
inline Ref number(double value) { return Ref{PyFloat_FromDouble(value)}; }
inline Ref truth(bool value) { return share(value ? Py_True : Py_False); }
inline Ref none() { return share(Py_None); }

// UTF-8; "" where it is no text.
inline std::string as_text(PyObject* object) {
  Py_ssize_t size = 0;
  const char* bytes = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (!bytes) PyErr_Clear();
  return bytes ? std::string(bytes, static_cast<std::size_t>(size)) : std::string{};
}

// The attribute; nullptr without an exception where there is none.
inline Ref attribute(PyObject* object, const char* name) {
  Ref found{PyObject_GetAttrString(object, name)};
  if (!found) PyErr_Clear();
  return found;
}

// As people are shown it, at most so long.
inline std::string shown(PyObject* object, std::size_t longest = 80) {
  const Ref repr{object ? PyObject_Repr(object) : nullptr};
  if (!repr) PyErr_Clear();
  std::string said = repr ? as_text(repr.get()) : "";
  return said.size() > longest ? said.substr(0, longest) + "…" : said;
}

}  // namespace hocket::pypolicy
