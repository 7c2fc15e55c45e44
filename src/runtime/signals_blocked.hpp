// For the start of a thread of ours, which inherits the mask: a signal meant for the application must never run its
// handler there.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace hocket::runtime {

// All signals are blocked in this thread while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace hocket::runtime
