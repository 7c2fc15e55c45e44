// Thin C++ wrappers of Python's C API: ownership as a type, and conversion of values. All functions need the
// interpreter's lock, which the calling thread holds since the start of the interpreter.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>
#include <string_view>

namespace hocket::pypolicy {

// Drops one reference.
struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
// An owned reference. nullptr means that a Python exception is set.
using Ref = std::unique_ptr<PyObject, Release>;

// Makes an owned reference of a borrowed one.
inline Ref share(PyObject* borrowed) { return Ref{Py_NewRef(borrowed)}; }
// Convert C++ values to Python objects. Bytes that are not UTF-8 are replaced.
inline Ref text(std::string_view value) {
  return Ref{PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace")};
}
inline Ref number(std::int64_t value) { return Ref{PyLong_FromLongLong(value)}; }
inline Ref number(double value) { return Ref{PyFloat_FromDouble(value)}; }
inline Ref truth(bool value) { return share(value ? Py_True : Py_False); }
inline Ref none() { return share(Py_None); }

// Returns the text in UTF-8, or "" if the object is no text. Clears the exception.
inline std::string as_text(PyObject* object) {
  Py_ssize_t size = 0;
  const char* bytes = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (!bytes) PyErr_Clear();
  return bytes ? std::string(bytes, static_cast<std::size_t>(size)) : std::string{};
}

// Returns the attribute. If there is none, returns nullptr without an exception.
inline Ref attribute(PyObject* object, const char* name) {
  Ref found{PyObject_GetAttrString(object, name)};
  if (!found) PyErr_Clear();
  return found;
}

// Returns the object as Python displays it, cut off after `longest` bytes, for messages.
inline std::string shown(PyObject* object, std::size_t longest = 80) {
  const Ref repr{object ? PyObject_Repr(object) : nullptr};
  if (!repr) PyErr_Clear();
  std::string said = repr ? as_text(repr.get()) : "";
  return said.size() > longest ? said.substr(0, longest) + "…" : said;
}

}  // namespace hocket::pypolicy
