#include "event/event.hpp"

#include <array>

namespace hocket::event {

static_assert(std::is_nothrow_move_constructible_v<AnyEvent> && std::is_nothrow_move_assignable_v<AnyEvent>);

Body::Body() = default;
Body::Body(const Body& other) = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(const Body& other) = default;
Body& Body::operator=(Body&& other) noexcept = default;
Body::~Body() = default;

namespace {

template <std::size_t I>
void move_from(AnyEvent& body, void* e) {
  body.emplace<I>(std::move(*static_cast<std::variant_alternative_t<I, AnyEvent>*>(e)));
}

using MoveFrom = void (*)(AnyEvent&, void*);

template <std::size_t... I>
constexpr std::array<MoveFrom, sizeof...(I)> move_from_each(std::index_sequence<I...>) {
  return {&move_from<I>...};
}

template <std::size_t... I>
std::optional<Body> make_alternative(std::string_view type, std::index_sequence<I...>) {
  std::optional<Body> body;
  ((std::variant_alternative_t<I, AnyEvent>::name == type ? void(body = std::variant_alternative_t<I, AnyEvent>{})
                                                          : void()),
   ...);
  return body;
}

constexpr auto every_index = std::make_index_sequence<std::variant_size_v<AnyEvent>>();

}  // namespace

Body::Body(std::size_t index, void* e) {
  static constexpr auto moves = move_from_each(every_index);
  moves.at(index)(*this, e);
}

std::optional<Body> make_body(std::string_view type) { return make_alternative(type, every_index); }

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
