/* hocket: functions that make an MPI application malleable: it grows and shrinks while it runs (Proteo, section 4.2;
 * CLARISSE+FlexMPI, Algorithm 2).
 *
 * About ten lines make an iterative code malleable:
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
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation), named before the MPI library itself.
 * Resizes are requested with `hocket resize`, or by HOCKET_RESIZE. Without either, each control point costs one small
 * broadcast.
 *
 * Terms: a *source* is a process before a reconfiguration, a *target* one after it; a process can be both. *Constant*
 * data are not written after hocket_malleable_begin, and may move while the application computes; *variable* data move
 * at the control point. A program that MPI_Comm_spawn started, and that calls hocket_malleable_create, counts as one
 * that joined later.
 *
 * - Who calls: "collective" means all processes of hocket_malleable_comm, in the same order, with the same arguments
 *   except for pointers. Each function states if it is collective or local.
 * - Threads: one thread at a time uses a job, the one that calls MPI.
 * - Errors: functions return HOCKET_OK, one of the states below, or a negative HOCKET_ERROR_…, about which
 *   hocket_error_text has a line.
 */
#ifndef HOCKET_MALLEABLE_H
#define HOCKET_MALLEABLE_H

#include <mpi.h>
#include <stdint.h>

#include "hocket.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One process of a malleable application. */
typedef struct hocket_malleable hocket_malleable;

/* Results of hocket_malleable_point; HOCKET_GO_ON equals HOCKET_OK. */
enum {
  HOCKET_GO_ON = 0,
  HOCKET_RESIZED = 2, /* communicator, ranges and arrays are new; continue at hocket_malleable_iteration */
  HOCKET_LEAVE = 3    /* free the job and end; the others continue without this process */
};

/* Distribution of the elements 0 … length - 1 of an array: each process holds one range, in the order of ranks. */
enum {
  HOCKET_REPLICATED = -1, /* every process holds all elements */
  HOCKET_BLOCK = -2,      /* ranges of the same size; the first ones hold one more if needed */
  HOCKET_WEIGHTED = -3    /* ranges by the speed of each process (hocket_malleable_balance); at first the same size */
};
/* Distribution for sparse matrices only: rows so that each process has about the same number of nonzeros. */
enum { HOCKET_NONZEROS = -4 };

/* Kinds of data: not written, or written, after hocket_malleable_begin. */
enum { HOCKET_CONSTANT = 0, HOCKET_VARIABLE = 1 };

/* Creates the job, after MPI_Init and before any other function of this header. Collective over MPI_COMM_WORLD. The
 * caller owns *job and frees it with hocket_malleable_free; on failure *job is NULL. Errors: ARGUMENT (also: MPI is not
 * initialised), MEMORY. */
HOCKET_API int hocket_malleable_create(hocket_malleable** job);

/* Returns 1 if a resize started this process: hocket_malleable_begin fills what it registers. Returns 0 in a process
 * that was there from the start. Local. */
HOCKET_API int hocket_malleable_joined(const hocket_malleable* job);

/* Registers an array of `length` elements of `type` and allocates this process's part. All processes that run the
 * program call it, including those that join later, with the same name, type, length, distribution and kind, in the
 * same order; before hocket_malleable_begin. Local: it does not communicate.
 *
 * `type` is a type without gaps (MPI_DOUBLE, a contiguous type of a whole row, …), of at most 1 MiB. `distribution` is
 * HOCKET_REPLICATED, HOCKET_BLOCK, HOCKET_WEIGHTED, or the value that hocket_malleable_csr returned: like the rows of
 * that matrix. `data` is the address of a pointer, e.g. of a `double*`. hocket writes to this pointer now and after
 * each resize, so it must stay where it is until hocket_malleable_free. The memory belongs to hocket, is zeroed at
 * first, and aligned to a page. All processes must have the same data format, because bytes are moved unchanged.
 * Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length,
                                      int distribution, int kind, void* data);

/* Registers a sparse matrix of `rows` rows as three arrays that move together: the starts of the local rows (int64_t,
 * local rows + 1 of them, counted from 0), and the columns and values of their nonzeros. Called like
 * hocket_malleable_array. `distribution` is HOCKET_BLOCK, HOCKET_WEIGHTED or HOCKET_NONZEROS; before
 * hocket_malleable_begin the rows have the distribution HOCKET_BLOCK in any case. `starts`, `columns` and `values` are
 * addresses of pointers, as above; columns and values have no elements before hocket_malleable_csr_reserve. *rows_of
 * receives a distribution for arrays of length `rows` that move with the rows. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                                    int64_t** starts, MPI_Datatype column_type, void* columns, MPI_Datatype value_type,
                                    void* values, int* rows_of);

/* Allocates `nonzeros` columns and values in this process, at least as many as the last element of the starts. The
 * caller fills both, and the starts. Local; before hocket_malleable_begin, in processes that have not joined. Errors:
 * ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr_reserve(hocket_malleable* job, const char* name, int64_t nonzeros);

/* Begins the computation; the arrays are filled. A process that joined receives its part of them now, and the first
 * processes become as many as `hocket run --malleable -n` requested. May take as long as a resize. Returns HOCKET_OK,
 * or HOCKET_LEAVE in a process that is not needed after all: it frees its job and ends. Collective, over the first
 * processes as over those that join; called once. Errors: ARGUMENT (the starts of a matrix are invalid; nothing has
 * begun). */
HOCKET_API int hocket_malleable_begin(hocket_malleable* job);

/* Returns the communicator of the computing processes. It belongs to hocket, and changes with each resize.
 * MPI_COMM_WORLD before hocket_malleable_begin. Local. */
HOCKET_API MPI_Comm hocket_malleable_comm(const hocket_malleable* job);

/* Returns the iteration to continue with: 0, or the number that the others passed to the control point at which this
 * process joined. Local. */
HOCKET_API int64_t hocket_malleable_iteration(const hocket_malleable* job);

/* Returns the range that a rank of hocket_malleable_comm holds of an array or matrix: elements (rows) *first to *first
 * + *count - 1. A negative rank means this process. Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first,
                                      int64_t* count);

/* Performs the control point at the end of an iteration; `iteration` is the number of iterations done. Returns
 * HOCKET_GO_ON, HOCKET_RESIZED or HOCKET_LEAVE, the same in all ranks but those that leave. A reconfiguration may
 * begin, continue and end here. Collective. Errors: ARGUMENT (before hocket_malleable_begin). */
HOCKET_API int hocket_malleable_point(hocket_malleable* job, int64_t iteration);

/* Requests that the next control point redistributes arrays with HOCKET_WEIGHTED by the speed of each process: its
 * elements divided by `busy_s`, the seconds in which it computed with them. If `busy_s` <= 0, the time since the last
 * control point outside of MPI is used, as hocket measured it. Collective, each process with its own time. The control
 * point returns HOCKET_RESIZED if a range changes. While a reconfiguration is in progress, no separate redistribution
 * happens. Errors: ARGUMENT (before hocket_malleable_begin). */
HOCKET_API int hocket_malleable_balance(hocket_malleable* job, double busy_s);

/* Declares the floating-point operations of one iteration in all processes together (0: unknown), for policies that
 * distribute cores by FLOP/s. They count if the hardware does not count them. Best called before
 * hocket_malleable_begin; it may change later, and is sent at the next control point. The value of rank 0 counts; call
 * it in every process, since any may become rank 0. Local. Errors: ARGUMENT (not finite, or below 0). */
HOCKET_API int hocket_malleable_declare_flop(hocket_malleable* job, double flop_per_iteration);

/* Frees the job, its arrays and its communicators, and lets sleeping processes end (see docs/malleable.md). Collective
 * over the computing processes, which wait for each other; local in a process that was told to leave. `job` and *job
 * may be NULL. *job becomes NULL. */
HOCKET_API int hocket_malleable_free(hocket_malleable** job);

/* Variants with Fortran handles of communicators and types, for include/hocket/hocket_malleable.f90. */
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
