// The options of the CG program.
#pragma once

#include <stdint.h>

#include "matrix.h"

extern const char kHelp[];

struct options {
  struct matrix_source source;
  const char* write_x;
  uint64_t iterations, print_every;
  double tolerance, iteration_time;
  int by_nonzeros, help;
};

// Alike in every process. What is wrong with the arguments goes into `bad`, of TEXT bytes; "" if nothing is.
void options_parse(struct options* o, int argc, char** argv, char* bad);
