// A program ends with exit code 3 and a line that says what does not hold.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      printf("line %d: %s does not hold (errno: %s)\n", __LINE__, #condition, strerror(errno)); \
      exit(3);                                                                                  \
    }                                                                                           \
  } while (0)
