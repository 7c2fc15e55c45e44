#include "event/event.hpp"

#include <array>
#include <unordered_map>

#include "event/become.hpp"

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

using Become = void (*)(AnyEvent&);

template <std::size_t I>
void become_default(AnyEvent& body) {
  body.emplace<I>();
}

// Returns what makes an event of each type by its name. Each frame is looked up here.
template <std::size_t... I>
std::unordered_map<std::string_view, Become> by_name(std::index_sequence<I...>) {
  return {{std::variant_alternative_t<I, AnyEvent>::name, &become_default<I>}...};
}

constexpr auto every_index = std::make_index_sequence<std::variant_size_v<AnyEvent>>();

}  // namespace

Body::Body(std::size_t index, void* e) {
  static constexpr auto moves = move_from_each(every_index);
  moves.at(index)(*this, e);
}

bool become(Body& body, std::string_view type) {
  static const std::unordered_map<std::string_view, Become> known = by_name(every_index);
  const auto found = known.find(type);
  if (found == known.end()) return false;
  found->second(body);
  return true;
}

std::optional<Body> make_body(std::string_view type) {
  std::optional<Body> body{std::in_place};
  if (!become(*body, type)) body.reset();
  return body;
}

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
