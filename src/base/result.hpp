// Errors as values: a Result holds what was asked for, or an Error whose text a person can act on.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace hocket {

// One line: what was wrong, which value, where, what to do.
struct Error {
  std::string text;
};

template <class T>
class [[nodiscard]] Result {
 public:
  // A value is a result and an error is a result: both convert by themselves.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  T& value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }

  // Precondition: !ok().
  const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status success() { return std::monostate{}; }

}  // namespace hocket
