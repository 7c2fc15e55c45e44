// Implements hocket_error_text: each thread keeps the code and text of its last failed call.
#include "api/status.hpp"

#include <utility>

#include "hocket/bus.h"

namespace hocket::api {
namespace {

// Code and text of the last failure of a thread.
struct LastError {
  int code = HOCKET_OK;
  std::string text;
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

// Returns the general meaning of a code, for which no call has left a text.
const char* meaning(int status) {
  switch (status) {
    case HOCKET_OK: return "no error";
    case HOCKET_BUS_NOTHING: return "no event came in time";
    case HOCKET_ERROR_ARGUMENT: return "an argument is invalid";
    case HOCKET_ERROR_NO_DAEMON: return "no hocketd listens; start one with 'hocket daemon start'";
    case HOCKET_ERROR_CONNECTION: return "the connection to hocketd has ended; close the bus and open it again";
    case HOCKET_ERROR_NO_PROPERTY: return "the event has no property of that name";
    case HOCKET_ERROR_TYPE: return "the property is of another type";
    case HOCKET_ERROR_MEMORY: return "memory has run out";
    case HOCKET_ERROR_IO: return "the storage failed";
    case HOCKET_ERROR_NOT_FOUND: return "there is no such file";
    case HOCKET_ERROR_ACCESS: return "this user may not access the file";
    case HOCKET_ERROR_NO_SPACE: return "no space is left";
    case HOCKET_ERROR_NO_SERVER: return "no I/O server runs; start one with 'hocket server start'";
    case HOCKET_ERROR_TIMEOUT: return "the time limit passed";
    case HOCKET_ERROR_CANCELED: return "another process of the group has ended or failed";
    case HOCKET_ERROR_ORDER: return "called in the wrong order";
    default: return "not an error code of hocket";
  }
}

}  // namespace

int fail(int code, std::string text) noexcept {
  last_error().code = code;
  last_error().text = std::move(text);
  return code;
}

}  // namespace hocket::api

const char* hocket_error_text(int status) {
  const auto& last = hocket::api::last_error();
  // The text belongs to the last failed call; for any other code only the general meaning is right.
  return last.code == status && !last.text.empty() ? last.text.c_str() : hocket::api::meaning(status);
}
