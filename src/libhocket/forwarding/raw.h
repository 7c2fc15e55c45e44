// System calls without libc, whose functions this library replaces. They are safe in signal handlers and in children of
// vfork, and leave errno as it is.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>

// Makes the system call. Returns what the kernel returns: a negative number of errno if it fails.
static inline long raw_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "forwarding knows the system calls of x86-64 and aarch64 only"
#endif
}

#define RAW(number, a, b, c, d, e, f) \
  raw_call((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define RAW1(number, a) RAW(number, a, 0, 0, 0, 0, 0)
#define RAW2(number, a, b) RAW(number, a, b, 0, 0, 0, 0)
#define RAW3(number, a, b, c) RAW(number, a, b, c, 0, 0, 0)
#define RAW4(number, a, b, c, d) RAW(number, a, b, c, d, 0, 0)

// libc's fstat may lead back here.
static inline long raw_fstat(int fd, struct stat* about) { return RAW2(SYS_fstat, fd, about); }
