// Errors are values: a Result holds what was requested, or an Error whose text a person can act on. Pure; value
// semantics.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace hocket {

// One line of text: what was wrong, which value, where, what to do.
struct Error {
  std::string text;
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Values and errors convert implicitly, so that a function can return either.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Returns the value. Precondition: ok().
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

  // Returns the error. Precondition: !ok().
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
