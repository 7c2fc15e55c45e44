#include "event/event.hpp"

namespace hocket::event {

std::string_view type_name(const Body& body) {
  return std::visit(
      [](const auto& e) -> std::string_view {
        if constexpr (std::is_same_v<std::decay_t<decltype(e)>, User>) {
          return e.type;
        } else {
          return std::decay_t<decltype(e)>::name;
        }
      },
      body);
}

namespace {

template <std::size_t... I>
std::optional<Body> make_alternative(std::string_view type, std::index_sequence<I...>) {
  std::optional<Body> body;
  ((std::variant_alternative_t<I, Body>::name == type ? void(body.emplace(std::in_place_index<I>)) : void()), ...);
  return body;
}

}  // namespace

std::optional<Body> make_body(std::string_view type) {
  return make_alternative(type, std::make_index_sequence<std::variant_size_v<Body>>());
}

}  // namespace hocket::event
