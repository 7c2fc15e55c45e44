// The time of an iteration by number of processes, given at some numbers and interpolated between them. Programs
// sleep up to this time, so that few cores can stand for many.
#pragma once

enum { CURVE_POINTS = 64 };

struct curve {
  int points;                   // 0: no curve was given
  int processes[CURVE_POINTS];  // ascending
  double seconds[CURVE_POINTS];
};

// Parses "PROCESSES:SECONDS,…", for instance "1:0.4,2:0.21,4:0.12". What is wrong goes into `bad`, of TEXT bytes
// (program.h), after the option's name.
void curve_parse(struct curve* curve, char* bad, const char* name, const char* text);

// Interpolates between two points linearly in the logarithms of both axes. Above the largest number the time stays
// constant; below the smallest the work counts as divided evenly. Precondition: the curve has points, processes > 0.
double curve_seconds(const struct curve* curve, int processes);
