// Macros for functions that stand before libc's functions of the same name. For files with _GNU_SOURCE.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

// The constructors look up all functions, because the loader may be busy when a signal handler calls the first one.
#define KNOWN(name, symbol)           \
  static _Atomic(void*) known_##name; \
  __attribute__((constructor)) static void find_##name(void) { known_##name = dlsym(RTLD_NEXT, symbol); }

static inline void* look_up(_Atomic(void*)* known, const char* name) {
  void* found = atomic_load_explicit(known, memory_order_acquire);
  if (!found) {
    found = dlsym(RTLD_NEXT, name);
    if (!found) abort();  // the program could not have been linked
    atomic_store_explicit(known, found, memory_order_release);
  }
  return found;
}

#define NEXT(result_type, name, symbol, parameters) \
  result_type(*next) parameters = __extension__(result_type(*) parameters) look_up(&known_##name, symbol)

// Gives the result of a system call the form that libc's functions have.
static inline ssize_t result_of(long result) {
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}
