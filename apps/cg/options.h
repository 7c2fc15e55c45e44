// The options of the CG program. Every process parses them, and one reports what is wrong.
#pragma once

#include <stdint.h>

#include "matrix.h"

extern const char kHelp[];

// The values of the options. Strings point into argv.
struct options {
  struct matrix_source source;
  const char* write_x;
  uint64_t iterations, print_every;
  double tolerance, iteration_time;
  int by_nonzeros, plain_sums, help;
};

// Parses the options. What is wrong goes into `bad`, of TEXT bytes, which must be "" before.
void options_parse(struct options* o, int argc, char** argv, char* bad);
