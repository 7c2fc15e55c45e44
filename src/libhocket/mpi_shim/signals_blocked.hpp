// Blocks signals while libhocket starts a thread. The new thread inherits the mask, so a signal that is meant for the
// application never runs its handler there.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace hocket::runtime {

// Blocks all signals in the calling thread for the object's lifetime, and then restores the mask.
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
