#include "api/held_view.hpp"

#include <string>

#include "bus/local_socket.hpp"

namespace hocket::api {

constinit transport::HeldView held_view;

namespace {

[[gnu::constructor]] void attach() {
  const std::string socket = bus::default_socket();
  const std::size_t slash = socket.rfind('/');
  if (slash != std::string::npos) held_view.attach(socket.substr(0, slash));
}

}  // namespace
}  // namespace hocket::api
