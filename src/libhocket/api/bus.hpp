// A connection to hocketd as the C API hands it out.
#pragma once

#include "api/status.hpp"
#include "bus/client.hpp"
#include "hocket/bus.h"

struct hocket_bus {
  hocket::bus::Client client;
};

namespace hocket::api {

// Returns CONNECTION if the call has ended the connection, else ARGUMENT.
inline int fail_call(const hocket_bus& bus, const Error& error) {
  // bus::Client closes the connection at every error after which it is unusable.
  return fail(bus.client.connected() ? HOCKET_ERROR_ARGUMENT : HOCKET_ERROR_CONNECTION, error.text);
}

}  // namespace hocket::api
