// Redirects functions inside libc: its own calls, such as those of C's streams, reach the replacement too.
#pragma once

#include <stdbool.h>

enum { redirect_bytes = 18 };  // of a function that are overwritten

// Writes a jump to `replacement` over the beginning of `function`. Nothing may call the function meanwhile, so it is
// for the time before `main`, while there is one thread. The function cannot be called any more. Returns false if the
// system forbids changes of code, or if the processor is not x86-64; the function is as it was then.
bool redirect(void* function, void (*replacement)(void));

// True if this process has one thread.
bool has_one_thread(void);
