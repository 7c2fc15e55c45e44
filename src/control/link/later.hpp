// A result that a thread of its own makes, since what makes it may take its time. Nothing throws; the object is not
// thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace hocket::link {

template <class T>
class Later {
 public:
  // Starts the work in a thread, which outlives this object if that is dropped earlier, and then drops the result. The
  // thread calls `then` after the work: from then on `take` returns the result.
  static Later begin(std::function<Result<T>()> work, std::function<void()> then = {}) {
    const auto promise = std::make_shared<std::promise<Result<T>>>();
    Later later{promise->get_future()};
    const auto end = [promise, then = std::move(then)](Result<T> result) {
      promise->set_value(std::move(result));
      if (then) then();
    };
    try {
      std::thread{[end, work = std::move(work)] { end(work()); }}.detach();
    } catch (const std::system_error& error) {
      end(Error{std::string{"there can be no further thread: "} + error.what()});
    }
    return later;
  }

  // Returns the result if it is there; once.
  std::optional<Result<T>> take() {
    if (!result_.valid() || result_.wait_for(std::chrono::seconds{0}) != std::future_status::ready) return std::nullopt;
    return result_.get();
  }

 private:
  explicit Later(std::future<Result<T>> result) : result_(std::move(result)) {}

  std::future<Result<T>> result_;
};

}  // namespace hocket::link
