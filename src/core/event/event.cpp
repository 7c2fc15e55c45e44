#include "event/event.hpp"

#include <array>

namespace hocket::event {

// Body's move operations are declared noexcept, which must hold for every event type.
static_assert(std::is_nothrow_move_constructible_v<AnyEvent> && std::is_nothrow_move_assignable_v<AnyEvent>);

// These are defaulted here and not in the header, so that one file compiles them for all event types.
Body::Body() = default;
Body::Body(const Body& other) = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(const Body& other) = default;
Body& Body::operator=(Body&& other) noexcept = default;
Body::~Body() = default;

namespace {

// Moves from `*e`, an event of the I-th type, into the body.
template <std::size_t I>
void move_from(AnyEvent& body, void* e) {
  body.emplace<I>(std::move(*static_cast<std::variant_alternative_t<I, AnyEvent>*>(e)));
}

using MoveFrom = void (*)(AnyEvent&, void*);

// Returns the table of these functions by index, so that Body's constructor needs no template per type.
template <std::size_t... I>
constexpr std::array<MoveFrom, sizeof...(I)> move_from_each(std::index_sequence<I...>) {
  return {&move_from<I>...};
}

// Compares the name with that of each type in order. The cost is linear in the number of types.
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
