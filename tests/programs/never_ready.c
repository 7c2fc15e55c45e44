// Preloaded: a process that hocketd starts to join an application stops before its first instruction, so that it is
// never ready. All other processes run as they would.
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void stop(void) {
  while (getenv("HOCKET_JOIN")) pause();
}
