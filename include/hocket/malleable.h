/* hocket: an MPI application that grows and shrinks while it runs (Proteo, section 4.2; CLARISSE+FlexMPI, Algorithm 2).
 *
 * Some ten lines make an iterative code malleable:
 *
 *   hocket_malleable* job;
 *   double* x;                                               // the local part, allocated by hocket
 *   hocket_malleable_create(&job);                           // after MPI_Init
 *   hocket_malleable_array(job, "x", MPI_DOUBLE, n, HOCKET_BLOCK, HOCKET_VARIABLE, &x);
 *   if (!hocket_malleable_joined(job)) fill(x);              // else x comes with the next line
 *   hocket_malleable_begin(job);
 *   for (it = hocket_malleable_iteration(job); it < end; it++) {
 *     iterate(hocket_malleable_comm(job), x);
 *     int now = hocket_malleable_point(job, it + 1);
 *     if (now == HOCKET_LEAVE) break;                        // this process is no longer needed
 *     if (now == HOCKET_RESIZED) it = hocket_malleable_iteration(job) - 1;  // x and the communicator are new
 *   }
 *   hocket_malleable_free(&job);                             // before MPI_Finalize
 *
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation), named before the MPI itself. Resizes
 * are asked for with `hocket resize`, or by HOCKET_RESIZE. Without either the calls cost one small broadcast each.
 *
 * Words: a *source* is a process before a reconfiguration, a *target* one after it; a process can be both. *Constant*
 * data are not written after hocket_malleable_begin, and may move while the application computes; *variable* data move
 * at the control point. A program that calls hocket_malleable_create and was started by MPI_Comm_spawn counts as one
 * that joined later.
 *
 * Functions return HOCKET_OK, one of the states below, or a negative HOCKET_ERROR_…, about which hocket_error_text has
 * a line. "Collective" means: by all processes of hocket_malleable_comm, in the same order, with the same arguments but
 * for pointers. A job is used by one thread at a time, the one that calls MPI.
 */
#ifndef HOCKET_MALLEABLE_H
#define HOCKET_MALLEABLE_H

#include <mpi.h>
#include <stdint.h>

#include "hocket.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process as a part of a malleable application. */
typedef struct hocket_malleable hocket_malleable;

/* What hocket_malleable_point tells; HOCKET_OK (0): go on. */
enum {
  HOCKET_GO_ON = 0,
  HOCKET_RESIZED = 2, /* communicator, ranges and arrays are new, and hocket_malleable_iteration tells where to go on */
  HOCKET_LEAVE = 3    /* free the job and end: the others go on without this process */
};

/* How the elements 0 … length - 1 of an array are shared out: each process holds one interval, in order of rank. */
enum {
  HOCKET_REPLICATED = -1, /* every process holds all of them */
  HOCKET_BLOCK = -2,      /* shares of the same size; the first ones hold one more where it does not divide */
  HOCKET_WEIGHTED = -3    /* shares by the speed of each process (hocket_malleable_balance); the same size at first */
};
/* Of a sparse matrix alone: rows so that each process has about the same number of nonzeros. */
enum { HOCKET_NONZEROS = -4 };

/* Whether an array may be written after hocket_malleable_begin. */
enum { HOCKET_CONSTANT = 0, HOCKET_VARIABLE = 1 };

/* After MPI_Init, before any other function of this header. By all processes of MPI_COMM_WORLD. *job is the caller's,
 * who frees it; NULL on failure. Errors: ARGUMENT (also: MPI is not initialised), MEMORY. */
HOCKET_API int hocket_malleable_create(hocket_malleable** job);

/* 1: this process was started by a resize; what it registers is filled by hocket_malleable_begin. 0: it is one of the
 * first. Local. */
HOCKET_API int hocket_malleable_joined(const hocket_malleable* job);

/* Registers an array of `length` elements of `type` and makes room for this process's part. By all processes that run
 * the program, those that join later too, each time with the same name, type, length, distribution and kind, in the
 * same order; before hocket_malleable_begin.
 *
 * `type` is a type without gaps (MPI_DOUBLE, a contiguous type of a whole row, …). `distribution` is HOCKET_REPLICATED,
 * HOCKET_BLOCK, HOCKET_WEIGHTED, or what hocket_malleable_csr gave: like the rows of that matrix. `data` is the address
 * of a pointer, e.g. of a `double*`: hocket writes into it now and after each resize, and it must stay where it is
 * until hocket_malleable_free. The memory is hocket's, zeroed at first, aligned to a page. Processes are taken to be of
 * one kind: bytes are moved as they are. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length,
                                      int distribution, int kind, void* data);

/* Registers a sparse matrix of `rows` rows as three arrays that move together: where the part's rows begin
 * (int64_t, local rows + 1 of them, counted from 0), and columns and values of its nonzeros. `distribution` is
 * HOCKET_BLOCK, HOCKET_WEIGHTED or HOCKET_NONZEROS; before hocket_malleable_begin the rows are shared out as
 * HOCKET_BLOCK, whichever it is. `starts`, `columns`, `values` are addresses of pointers, as above; `columns` and
 * `values` have room for nothing before hocket_malleable_csr_reserve. *rows_of is a distribution for arrays of length
 * `rows` that go with the rows. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                                    int64_t** starts, MPI_Datatype column_type, void* columns, MPI_Datatype value_type,
                                    void* values, int* rows_of);

/* Makes room for `nonzeros` columns and values in this process (at least as many as the starts end with), which the
 * caller fills with the starts. Local; before hocket_malleable_begin, by processes that have not joined. Errors:
 * ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr_reserve(hocket_malleable* job, const char* name, int64_t nonzeros);

/* The arrays are filled: a process that joined gets its part of them now, and the first processes become as many as
 * `hocket run --malleable -n` asked for. May take as long as a resize does. HOCKET_OK, or HOCKET_LEAVE for a process
 * that is not needed after all: it frees its job and ends. Collective, over the processes that run the program from its
 * start as over those that join. Errors: ARGUMENT (the starts of a matrix are wrong; nothing has begun). */
HOCKET_API int hocket_malleable_begin(hocket_malleable* job);

/* The communicator of those that compute, hocket's; it changes with each resize. Before begin: MPI_COMM_WORLD. Local.
 */
HOCKET_API MPI_Comm hocket_malleable_comm(const hocket_malleable* job);

/* The iteration to go on with: 0, or what the others gave to the control point at which this process came. Local. */
HOCKET_API int64_t hocket_malleable_iteration(const hocket_malleable* job);

/* The interval that a rank of hocket_malleable_comm holds of the array or matrix: elements (rows) *first to
 * *first + *count - 1. A negative rank: this process's. Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first,
                                      int64_t* count);

/* The control point at the end of an iteration: `iteration` iterations are done. Gives HOCKET_GO_ON, HOCKET_RESIZED or
 * HOCKET_LEAVE. Collective. The state is the same in all ranks but for those that leave. */
HOCKET_API int hocket_malleable_point(hocket_malleable* job, int64_t iteration);

/* Asks that at the next control point arrays with HOCKET_WEIGHTED are shared out anew, by the speed of each process:
 * its elements by `busy_s`, the seconds it computed with them. `busy_s` <= 0: the time since the last control point
 * that was not spent in MPI, as hocket measured it. Collective, each with its own time. The point then gives
 * HOCKET_RESIZED. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_balance(hocket_malleable* job, double busy_s);

/* Says how many floating-point operations an iteration of all processes together takes (0: not known), for policies
 * that share cores out by FLOP/s. Believed where the hardware does not count them. Best before
 * hocket_malleable_begin; may change later, and is told at the next control point. The value of rank 0 counts; call it
 * in every process, since any may become rank 0. Local. Errors: ARGUMENT (not finite, below 0). */
HOCKET_API int hocket_malleable_declare_flop(hocket_malleable* job, double flop_per_iteration);

/* Frees the job, its arrays and its communicators, and lets processes go that sleep (see docs/malleable.md). Collective
 * over those that compute, who wait for each other; local for one that was told to leave. NULL is allowed. *job becomes
 * NULL. */
HOCKET_API int hocket_malleable_free(hocket_malleable** job);

/* hocket_malleable_comm as a handle of Fortran (include/hocket/hocket_malleable.f90). */
HOCKET_API MPI_Fint hocket_malleable_comm_f(const hocket_malleable* job);
HOCKET_API int hocket_malleable_array_f(hocket_malleable* job, const char* name, MPI_Fint type, int64_t length,
                                        int distribution, int kind, void* data);
HOCKET_API int hocket_malleable_csr_f(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                                      int64_t** starts, MPI_Fint column_type, void* columns, MPI_Fint value_type,
                                      void* values, int* rows_of);

#ifdef __cplusplus
}
#endif

#endif
