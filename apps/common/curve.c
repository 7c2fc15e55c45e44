#include "curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

// Limits of a plausible point.
enum { MOST_PROCESSES = 1 << 20 };
static const double kMostSeconds = 3600;

// Parses one point and returns the position behind it, or NULL if there is none.
static const char* parse_point(const char* text, int* processes, double* seconds) {
  char* end;
  const long whole = strtol(text, &end, 10);
  if (end == text || *end != ':' || whole < 1 || whole > MOST_PROCESSES) return NULL;
  text = end + 1;
  *processes = (int)whole;
  *seconds = strtod(text, &end);
  return end != text && *seconds > 0 && *seconds <= kMostSeconds ? end : NULL;
}

void curve_parse(struct curve* curve, char* bad, const char* name, const char* text) {
  curve->points = 0;
  for (const char* at = text;; at++) {
    int* processes = &curve->processes[curve->points];
    at = curve->points < CURVE_POINTS ? parse_point(at, processes, &curve->seconds[curve->points]) : NULL;
    if (!at || (*at && *at != ',') || (curve->points > 0 && processes[0] <= processes[-1])) break;
    curve->points++;
    if (!*at) return;
  }
  snprintf(bad, TEXT,
           "--%s %.3000s: point %d is wrong; give PROCESSES:SECONDS,… with at most %d points, processes rising, and "
           "seconds above 0 and at most %g",
           name, text, curve->points + 1, CURVE_POINTS, kMostSeconds);
}

double curve_seconds(const struct curve* curve, int processes) {
  const int last = curve->points - 1;
  if (processes >= curve->processes[last]) return curve->seconds[last];
  if (processes <= curve->processes[0]) return curve->seconds[0] * curve->processes[0] / processes;
  int i = 0;
  while (processes > curve->processes[i + 1]) i++;
  // The share is the position between both points on a logarithmic axis.
  const double share =
      log((double)processes / curve->processes[i]) / log((double)curve->processes[i + 1] / curve->processes[i]);
  return curve->seconds[i] * pow(curve->seconds[i + 1] / curve->seconds[i], share);
}
