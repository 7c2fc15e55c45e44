#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

const char kHelp[] =
    "cg: solve a sparse, symmetric, positive definite system with the conjugate gradient method\n"
    "  mpiexec -n RANKS cg --matrix FILE [options]\n"
    "  mpiexec -n RANKS cg --stencil N [options]\n"
    "\n"
    "  --matrix FILE           a sparse matrix in Matrix Market format, .mtx or .mtx.gz; if it is general, its\n"
    "                          symmetric part (A + A^T) / 2 is used; entries of a pattern are 1\n"
    "  --stencil N             the 27-point stencil on N x N x N points: diagonal 26, the others -1\n"
    "  --reach R               a wider stencil, of (2 R + 1)^3 points: 2 gives 125, 3 gives 343 (1)\n"
    "  --dominant              make the diagonal 1 + the sum of the other absolute values in its row, so that\n"
    "                          any matrix is positive definite (for patterns)\n"
    "  --shift D               add D to the diagonal (0)\n"
    "  --rows number|nonzeros  give each process as many rows, or as many nonzeros, as the others (number)\n"
    "  --sums exact|plain      add up inner products as exact integers, so that the numbers do not depend on the\n"
    "                          processes, or as solvers do: faster, and the last digits vary (exact)\n"
    "  --iterations N          stop at this iteration (1000)\n"
    "  --tolerance T           stop when the residual is at most T times the norm of b (1e-10; 0: never)\n"
    "  --iteration-time S      make an iteration last at least S seconds by sleeping, in place of more computing (0)\n"
    "  --print-every K         print the residual every K iterations (10)\n"
    "  --write-x FILE          write the solution, a number a line\n"
    "\n"
    "It is malleable: hocket resize, HOCKET_RESIZE and the like change the number of processes (docs/malleable.md).\n"
    "The last line on stdout is a summary in JSON. Exit code: 0; 1 if something failed; 2 for bad arguments or "
    "files.\n";

static const struct option kOptions[] = {{"matrix", required_argument, 0, 'm'},
                                         {"stencil", required_argument, 0, 's'},
                                         {"reach", required_argument, 0, 'R'},
                                         {"sums", required_argument, 0, 'S'},
                                         {"rows", required_argument, 0, 'r'},
                                         {"dominant", no_argument, 0, 'd'},
                                         {"shift", required_argument, 0, 'D'},
                                         {"iterations", required_argument, 0, 'i'},
                                         {"tolerance", required_argument, 0, 't'},
                                         {"iteration-time", required_argument, 0, 'T'},
                                         {"print-every", required_argument, 0, 'p'},
                                         {"write-x", required_argument, 0, 'x'},
                                         {"help", no_argument, 0, 'h'},
                                         {0, 0, 0, 0}};

// Stores one option; a wrong value goes into `bad`.
static void set_option(struct options* o, int key, const char* name, char* bad) {
  switch (key) {
    case 'm': o->source.path = optarg; break;
    case 's': o->source.points = (int64_t)whole_number(bad, name, optarg, 1, MATRIX_POINTS); break;
    case 'r':
      o->by_nonzeros = strcmp(optarg, "nonzeros") == 0;
      if (!o->by_nonzeros && strcmp(optarg, "number") != 0)
        snprintf(bad, TEXT, "--rows %.3000s: give number or nonzeros", optarg);
      break;
    case 'R': o->source.reach = (int64_t)whole_number(bad, name, optarg, 1, MATRIX_REACH); break;
    case 'S':
      o->plain_sums = strcmp(optarg, "plain") == 0;
      if (!o->plain_sums && strcmp(optarg, "exact") != 0)
        snprintf(bad, TEXT, "--sums %.3000s: give exact or plain", optarg);
      break;
    case 'd': o->source.dominant = 1; break;
    case 'D': o->source.shift = real_number(bad, name, optarg, -1e300, 1e300); break;
    case 'i': o->iterations = whole_number(bad, name, optarg, 0, INT64_MAX); break;
    case 't': o->tolerance = real_number(bad, name, optarg, 0, 1); break;
    case 'T': o->iteration_time = real_number(bad, name, optarg, 0, 3600); break;
    case 'p': o->print_every = whole_number(bad, name, optarg, 1, INT64_MAX); break;
    case 'x': o->write_x = optarg; break;
    case 'h': o->help = 1; break;
    default: break;
  }
}

void options_parse(struct options* o, int argc, char** argv, char* bad) {
  *o = (struct options){.iterations = 1000, .tolerance = 1e-10, .print_every = 10};
  opterr = 0;
  int index = 0;
  for (int key; !bad[0] && (key = getopt_long(argc, argv, ":", kOptions, &index)) != -1;) {
    if (key == ':') snprintf(bad, TEXT, "%s needs a value (see --help)", argv[optind - 1]);
    if (key == '?') snprintf(bad, TEXT, "unknown option %s (see --help)", argv[optind - 1]);
    set_option(o, key, kOptions[index].name, bad);
  }
  if (!bad[0] && optind < argc) snprintf(bad, TEXT, "unexpected argument %s (see --help)", argv[optind]);
  if (!bad[0] && !o->help && !o->source.path == !o->source.points)
    snprintf(bad, TEXT, "give either --matrix FILE or --stencil N (see --help)");
  if (!bad[0] && o->source.path && o->source.reach) snprintf(bad, TEXT, "--reach needs --stencil (see --help)");
  if (!o->source.reach) o->source.reach = 1;
}
