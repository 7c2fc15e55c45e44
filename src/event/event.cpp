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

}  // namespace hocket::event
