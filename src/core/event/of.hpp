// Matches an event that is const or not, so that one list of fields serves readers and writers. Pure.
#pragma once

#include <concepts>
#include <type_traits>

namespace hocket::event {

template <class E, class T>
concept Of = std::same_as<std::remove_const_t<E>, T>;

}  // namespace hocket::event
