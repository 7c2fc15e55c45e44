// A sum of doubles that does not depend on their order, and so not on how processes share them. Each number is split
// into pieces of 32 bits, which are added as integers, exactly. A resized run then gives the same bits as one without
// a resize.
#pragma once

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>

// Bin k counts units of 2^(32 k - 1074). The last bin counts numbers that are infinite or NaN.
enum { EXACT_BINS = 66, EXACT_NOT_FINITE = EXACT_BINS, EXACT_WORDS };
#define EXACT_MOST (UINT64_C(1) << 30)  // limit on the numbers in one sum, over all processes, so that no bin overflows

// The bins of one sum; all zero is the empty sum.
struct exact_sum {
  int64_t bins[EXACT_WORDS];
};

// Adds a number. A subnormal has no implicit leading bit and the place of the smallest exponent.
static inline void exact_add(struct exact_sum* sum, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const unsigned exponent = (unsigned)(bits >> 52) & 2047u;
  if (exponent == 2047) {
    sum->bins[EXACT_NOT_FINITE]++;
    return;
  }
  const uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(exponent != 0) << 52;
  const unsigned place = exponent ? exponent - 1 : 0, bin = place / 32, shift = place % 32;
  // A shifted mantissa of 53 bits covers up to three bins.
  const uint64_t low = (mantissa & UINT32_MAX) << shift, high = (mantissa >> 32) << shift;
  const int64_t sign = bits >> 63 ? -1 : 1;
  sum->bins[bin] += sign * (int64_t)(low & UINT32_MAX);
  sum->bins[bin + 1] += sign * (int64_t)((low >> 32) + (high & UINT32_MAX));
  sum->bins[bin + 2] += sign * (int64_t)(high >> 32);
}

// Returns the sum to within one unit in the last place, or NAN if a number was not finite.
static inline double exact_value(const struct exact_sum* sum) {
  if (sum->bins[EXACT_NOT_FINITE] != 0) return NAN;
  double value = 0;
  int64_t carry = 0;
  for (int bin = 0; bin < EXACT_BINS; bin++) {
    const int64_t count = sum->bins[bin] + carry;
    carry = (count + (INT64_C(1) << 31)) >> 32;  // leaves -2^31 … 2^31 - 1, so that bins do not cancel each other
    value += ldexp((double)(count - (carry << 32)), 32 * bin - 1074);
  }
  return value + ldexp((double)carry, 32 * EXACT_BINS - 1074);
}

// Returns the sum over all processes of `comm`, the same in each. Collective.
static inline double exact_total(const struct exact_sum* mine, MPI_Comm comm) {
  struct exact_sum all;
  MPI_Allreduce(mine->bins, all.bins, EXACT_WORDS, MPI_INT64_T, MPI_SUM, comm);
  return exact_value(&all);
}
