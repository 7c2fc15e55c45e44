// Functions of libc that must see what is collected, or after which another process may see the file (collect.h).
#pragma once

#include <stdbool.h>

// Has libc's own calls of some functions lead here too, before `main`. Returns false if that is not possible; nothing
// may be collected then.
bool collect_redirect(void* libc);
