#include "pypolicy/module/time_limit.hpp"

#include <csignal>
#include <ctime>
#include <optional>

#include "base/clock.hpp"
#include "pypolicy/module/python.hpp"

namespace hocket::pypolicy {
namespace {

timer_t timer{};
PyObject* too_slow = nullptr;  // derived from BaseException, so that `except Exception` does not catch it
// A busy machine may delay a call through no fault of its own. So the limit applies to its computing time, and a
// multiple of it to its elapsed time.
constexpr int most_held_up = 2;  // multiple of the limit
// The call under way: CPU time of the thread and time at its beginning.
struct TimedCall {
  Duration limit, computed;
  Time begun;
};
std::optional<TimedCall> under_way;

// Returns the CPU time of this thread.
Duration computed() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// Raises the exception if the call has exceeded a limit. A signal may still arrive after its call; it is ignored.
PyObject* on_signal(PyObject*, PyObject*) {
  if (!under_way) Py_RETURN_NONE;
  if (computed() - under_way->computed < under_way->limit &&
      node_now() - under_way->begun < most_held_up * under_way->limit)
    Py_RETURN_NONE;
  const Ref seconds = number(to_s(under_way->limit));
  if (seconds) PyErr_Format(too_slow, "it took longer than %S s", seconds.get());
  return nullptr;
}

PyMethodDef handler{"hocket_time_limit", on_signal, METH_VARARGS, nullptr};

// Sets the timer to a first and further expiries; two zeros stop it.
void set_timer(Duration after, Duration again) {
  const auto spec = [](Duration duration) {
    return timespec{duration.count() / 1'000'000'000, duration.count() % 1'000'000'000};
  };
  const itimerspec times{spec(again), spec(after)};
  timer_settime(timer, 0, &times, nullptr);
}

}  // namespace

bool prepare_time_limits() {
  const int signal_number = SIGRTMIN + 6;  // a signal that no known library uses
  too_slow = PyErr_NewException("hocket.TooSlow", PyExc_BaseException, nullptr);
  const Ref function{PyCFunction_New(&handler, nullptr)};
  const Ref signals{PyImport_ImportModule("signal")};
  if (!too_slow || !function || !signals) return false;
  const Ref before{PyObject_CallMethod(signals.get(), "signal", "iO", signal_number, function.get())};
  if (!before) return false;
  sigevent event{};
  // The signal must reach the thread of the interpreter: it interrupts a system call there.
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number;
  event._sigev_un._tid = gettid();
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) return true;
  PyErr_SetFromErrno(PyExc_OSError);
  return false;
}

TimeLimit::TimeLimit(Duration limit) {
  under_way = {limit, computed(), node_now()};
  set_timer(limit + std::chrono::milliseconds{1}, limit / most_held_up);
}

TimeLimit::~TimeLimit() {
  set_timer({}, {});
  under_way.reset();
}

}  // namespace hocket::pypolicy
