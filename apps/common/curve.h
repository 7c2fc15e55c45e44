// Seconds of an iteration by the number of processes, given at some numbers and interpolated at the others.
#pragma once

enum { CURVE_POINTS = 64 };

struct curve {
  int points;                   // 0: none was given
  int processes[CURVE_POINTS];  // rising
  double seconds[CURVE_POINTS];
};

// Reads "PROCESSES:SECONDS,…", e.g. "1:0.4,2:0.21,4:0.12". What is wrong with it goes into `bad`, of TEXT bytes
// (program.h), after the option's name.
void curve_parse(struct curve* curve, char* bad, const char* name, const char* text);

// Between two points straight in the logarithms of both. Above the largest number as there; below the smallest the work
// counts as divided evenly. Precondition: it has points, processes > 0.
double curve_seconds(const struct curve* curve, int processes);
