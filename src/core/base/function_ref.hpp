// A FunctionRef refers to a function that is called before its receiver returns. It copies and allocates nothing. The
// function must outlive it, so it serves as a parameter type, not for storage.
#pragma once

#include <type_traits>
#include <utility>

namespace hocket {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef>)
      FunctionRef(const Function& function)  // NOLINT(google-explicit-constructor): as an argument
      : function_(&function), call_([](const void* called, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(called))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace hocket
