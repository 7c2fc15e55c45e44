// Runs a program with libhocket preloaded: hocket-preload PROGRAM [ARGUMENT…]. It puts the libhocket-openmpi.so that
// lies beside its own executable in front of LD_PRELOAD, and replaces itself by PROGRAM. Open MPI's launchers start
// each rank through it (README.md), so the ranks load libhocket and the launcher does not.
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Extends LD_PRELOAD. On failure it leaves the variable as it is, and the program runs without libhocket.
static void preload(void) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return;
  self[length] = '\0';
  const char* others = getenv("LD_PRELOAD");
  char* value = NULL;
  if (asprintf(&value, "%s/libhocket-openmpi.so%s%s", dirname(self), others && *others ? ":" : "",
               others ? others : "") < 0)
    return;
  setenv("LD_PRELOAD", value, 1);
  free(value);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "hocket-preload: no program given; usage: hocket-preload PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  preload();
  execvp(argv[1], argv + 1);
  fprintf(stderr, "hocket-preload: cannot start '%s': %s\n", argv[1], strerror(errno));
  return errno == ENOENT ? 127 : 126;
}
