// An event as the C API returns it: its type and its properties, flattened. Immutable, so several threads may read it.
#pragma once

#include "event/properties.hpp"
#include "hocket/bus.h"

struct hocket_bus_event {
  explicit hocket_bus_event(const hocket::event::Event& event)
      : type(type_name(event.body)), properties(properties_of(event)) {}

  std::string type;
  hocket::event::Properties properties;
};
