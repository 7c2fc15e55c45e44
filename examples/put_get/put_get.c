/* Two applications exchange a field by name, step by step, without a file: one computes it, the other reads it.
 *
 * Run it beside a daemon and an I/O server:   hocket daemon start
 *                                             hocket server start --dir /tmp
 *                           cc put_get.c -I<prefix>/include -L<prefix>/lib -Wl,-rpath,<prefix>/lib -lhocket -o put_get
 *                           ./put_get
 *
 * Here both are processes of one program; separate programs do the same. */
#include <hocket/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CELLS = 1000, EVERY = 100, STEPS = 3 };

/* Ends the process if a call has failed. */
static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "put_get: %s\n", hocket_error_text(status));
  exit(1);
}

static void compute(void) {
  double field[CELLS];
  hocket_file* file;
  for (int step = 1; step <= STEPS; ++step) {
    for (int i = 0; i < CELLS; ++i) field[i] = step * i;
    check(hocket_file_open("hocket:/field", HOCKET_FILE_WRITE, NULL, &file));
    check(hocket_file_put(file, 0, field, sizeof field));
    check(hocket_file_close(file)); /* now it is there */
  }
}

/* Gets every hundredth cell of each version. */
static void look(void) {
  double seen[CELLS / EVERY];
  hocket_file* file;
  for (int step = 1; step <= STEPS; ++step) {
    int64_t version, bytes, got;
    check(hocket_file_open("hocket:/field", HOCKET_FILE_READ, NULL, &file)); /* waits until there is one */
    check(hocket_file_version(file, &version));
    check(hocket_file_size(file, &bytes));
    check(hocket_file_get_strided(file, 0, sizeof seen[0], EVERY * sizeof seen[0], CELLS / EVERY, seen, &got));
    check(hocket_file_close(file));
    printf("version %d of %d bytes: got %d bytes, the last cell is %g\n", (int)version, (int)bytes, (int)got,
           seen[CELLS / EVERY - 1]);
  }
}

int main(void) {
  const pid_t child = fork();
  if (child < 0) {
    perror("put_get: fork");
    return 1;
  }
  if (child == 0) {
    compute();
    return 0;
  }
  look();
  int ended;
  waitpid(child, &ended, 0);
  return ended != 0;
}
