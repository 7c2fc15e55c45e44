// Errors of the C API: a code, and a text about the last call of this thread that failed. Thread-safe: each thread has
// its own text.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/result.hpp"
#include "hocket/error.h"

namespace hocket::api {

// Keeps the text for hocket_error_text and returns the code.
int fail(int code, std::string text) noexcept;

// Fails because a pointer is NULL.
inline int no_null(const char* function, const char* argument) {
  return fail(HOCKET_ERROR_ARGUMENT, std::string{function} + ": '" + argument + "' is NULL");
}

// Runs `call`, which returns a code, and turns exceptions into codes: none may reach the caller, who may be C.
template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(HOCKET_ERROR_MEMORY, {});
  } catch (const std::exception& error) {
    return fail(HOCKET_ERROR_ARGUMENT, error.what());
  } catch (...) {
    return fail(HOCKET_ERROR_ARGUMENT, "a callback has thrown an exception; callbacks must not throw");
  }
}

}  // namespace hocket::api
