/* hocket: functions that make an MPI application malleable: it grows and shrinks while it runs (Proteo, section 4.2;
 * CLARISSE+FlexMPI, Algorithm 2).
 *
 * About ten lines make an iterative code malleable:
 *
 *   hocket_malleable* job;
 *   double* x;                                              // the local part, allocated by hocket
 *   hocket_malleable_create(&job);                          // after MPI_Init
 *   hocket_malleable_array(job, "x", MPI_DOUBLE, n, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_VARIABLE, &x);
 *   if (!hocket_malleable_joined(job)) fill(x);             // else x comes with the next line
 *   hocket_malleable_begin(job, 0);                         // the first iteration is 0
 *   while (hocket_malleable_next(job, end, &it) > 0)        // in place of: for (it = 0; it < end; it++)
 *     iterate(hocket_malleable_comm(job), x, it);           // x and the communicator may be new each time
 *   if (!hocket_malleable_left(job)) print(x);
 *   hocket_malleable_free(&job);                            // before MPI_Finalize
 *
 * Life cycle; a bracket joins a pair:
 *
 *   first processes                        processes that join            who calls
 *
 *   +- hocket_malleable_create             the same                       all of MPI_COMM_WORLD
 *   |    hocket_malleable_array, _csr      the same, in the same order    each process
 *   |    fill the arrays                   (_joined returns 1)            each process
 *   |    hocket_malleable_begin            the same: receives the arrays  all, with those that join
 *   |    +-> hocket_malleable_next         the same from here on          all of hocket_malleable_comm
 *   |    |   iterate                                                      the same
 *   |    +-- hocket_malleable_balance                                     the same; optional
 *   |    after the last iteration, or in a process that leaves (_left returns 1)
 *   +- hocket_malleable_free               the same                       the same; one that leaves calls it alone
 *
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation), named before the MPI library itself.
 * Resizes are requested with `hocket resize`, or by HOCKET_RESIZE. They happen in hocket_malleable_next, between two
 * iterations: its *control point*. Without a resize, a control point costs one small broadcast. With weighted arrays,
 * the processes also compare their computing times now and then (see docs/malleable.md, "Balance"), and after any
 * control point the ranges may be new.
 *
 * Terms: *constant* data are not written after hocket_malleable_begin, and may move while the application computes;
 * *variable* data move at the control point. A program that MPI_Comm_spawn started, and that calls
 * hocket_malleable_create, counts as one that joined later.
 *
 * - Who calls: "collective" means all processes of hocket_malleable_comm, in the same order, with the same arguments
 *   except for pointers. Each function states if it is collective or local.
 * - Threads: one thread at a time uses a job, the one that calls MPI.
 * - Ownership: the caller owns the job from hocket_malleable_create to hocket_malleable_free. The arrays and the
 *   communicator belong to hocket.
 * - Errors: functions return HOCKET_OK, a value stated below, or a negative HOCKET_ERROR_…, about which
 *   hocket_error_text has a line.
 */
#ifndef HOCKET_MALLEABLE_H
#define HOCKET_MALLEABLE_H

#include <mpi.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One process of a malleable application. */
typedef struct hocket_malleable hocket_malleable;

/* Results of hocket_malleable_next that begin an iteration. */
enum {
  HOCKET_MALLEABLE_ITERATE = 1, /* everything is as it was */
  HOCKET_MALLEABLE_RESIZED = 2  /* communicator, ranges and arrays are new, as in the first iteration of a process */
};

/* Distribution of the elements 0 … length - 1 of an array: each process holds one range, in the order of ranks. */
enum {
  HOCKET_MALLEABLE_REPLICATED = -1, /* every process holds all elements */
  HOCKET_MALLEABLE_BLOCK = -2,      /* ranges of the same size; the first ones hold one more if needed */
  HOCKET_MALLEABLE_WEIGHTED = -3 /* ranges by the speed of each process, which hocket measures; first the same size */
};
/* Distribution for sparse matrices only: rows so that each process has about the same number of nonzeros. */
enum { HOCKET_MALLEABLE_NONZEROS = -4 };

/* Kinds of data: not written, or written, after hocket_malleable_begin. */
enum { HOCKET_MALLEABLE_CONSTANT = 0, HOCKET_MALLEABLE_VARIABLE = 1 };

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
 * HOCKET_MALLEABLE_REPLICATED, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_WEIGHTED, or the value that
 * hocket_malleable_csr returned: like the rows of that matrix. `data` is the address of a pointer, e.g. of a `double*`.
 * hocket writes to this pointer now and after each resize, so it must stay where it is until hocket_malleable_free. The
 * memory belongs to hocket, is zeroed at first, and aligned to a page. All processes must have the same data format,
 * because bytes are moved unchanged. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length,
                                      int distribution, int kind, void* data);

/* Registers a sparse matrix of `rows` rows as three arrays that move together: the starts of the local rows (int64_t,
 * local rows + 1 of them, counted from 0), and the columns and values of their nonzeros. Called like
 * hocket_malleable_array. `distribution` is HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_WEIGHTED or
 * HOCKET_MALLEABLE_NONZEROS; before hocket_malleable_begin the rows have the distribution HOCKET_MALLEABLE_BLOCK in any
 * case. `starts`, `columns` and `values` are addresses of pointers, as above; columns and values have no elements
 * before hocket_malleable_csr_reserve, and their types are as for arrays. *rows_of receives a distribution for arrays
 * of length `rows` that move with the rows. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                                    int64_t** starts, MPI_Datatype column_type, void* columns, MPI_Datatype value_type,
                                    void* values, int* rows_of);

/* Allocates `nonzeros` columns and values in this process, at least as many as the last element of the starts. The
 * caller fills both, and the starts. Local; before hocket_malleable_begin, in processes that have not joined. Errors:
 * ARGUMENT, MEMORY. */
HOCKET_API int hocket_malleable_csr_reserve(hocket_malleable* job, const char* name, int64_t nonzeros);

/* Begins the computation; the arrays are filled. A process that joined receives its part of them now, and the first
 * processes become as many as `hocket run --malleable -n` requested. May take as long as a resize; a process that is
 * not needed after all leaves (hocket_malleable_left). `first` is the number of the first iteration, 0 unless the
 * program continues an earlier run; a process that joins may give any. Collective, over the first processes as over
 * those that join; called once. Errors: ARGUMENT (`first` is below 0, or the starts of a matrix are invalid; nothing
 * has begun). */
HOCKET_API int hocket_malleable_begin(hocket_malleable* job, int64_t first);

/* Returns the communicator of the computing processes. It belongs to hocket, and changes with each resize.
 * MPI_COMM_WORLD before hocket_malleable_begin. Local. */
HOCKET_API MPI_Comm hocket_malleable_comm(const hocket_malleable* job);

/* Returns 1 if this process is no longer needed: it iterates no more, has no data, and so prints no results. It frees
 * its job and ends; the others continue without it. Local. */
HOCKET_API int hocket_malleable_left(const hocket_malleable* job);

/* Returns the range that a rank of hocket_malleable_comm holds of an array or matrix: elements (rows) *first to *first
 * + *count - 1. A negative rank means this process. Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first,
                                      int64_t* count);

/* Ends the iteration under way with a control point, where a reconfiguration may begin, continue and end, and begins
 * the next one. The loop `while (hocket_malleable_next(job, last, &it) > 0)` is `for (it = first; it < last; it++)` of
 * all processes together, with the `first` of hocket_malleable_begin: hocket counts, and each process gets the right
 * iteration, also one that joined, or that slept and is needed again. All give the same `last`; it may change.
 *
 * Returns HOCKET_MALLEABLE_ITERATE or HOCKET_MALLEABLE_RESIZED, the same in all ranks but those that enter the loop
 * here: *iteration is the one to compute. Returns 0 when `last` iterations are done, or if this process leaves (see
 * hocket_malleable_left): *iteration is the number of iterations done. No control point precedes the first iteration or
 * follows the last one. A program may end the loop earlier by `break`, in all processes after the same iteration.
 * Collective. Errors: ARGUMENT (before hocket_malleable_begin). */
HOCKET_API int hocket_malleable_next(hocket_malleable* job, int64_t last, int64_t* iteration);

/* Requests that the next control point redistributes arrays with HOCKET_MALLEABLE_WEIGHTED by the speed of each
 * process: its elements divided by `busy_s`, the seconds in which it computed with them. If `busy_s` <= 0, the time
 * since the last control point outside of MPI and I/O is used, as hocket measured it. A program need not call this:
 * hocket balances by itself at resizes (docs/malleable.md, "Balance") until the program calls this for the first time,
 * and from then on leaves the decision to the program. Resizes then use the speeds of the last call. Collective, each
 * process with its own time. hocket_malleable_next returns HOCKET_MALLEABLE_RESIZED if a range changes. While a
 * reconfiguration is in progress, no separate redistribution happens. Errors: ARGUMENT (before hocket_malleable_begin).
 */
HOCKET_API int hocket_malleable_balance(hocket_malleable* job, double busy_s);

/* Declares the floating-point operations of one iteration in all processes together (0: unknown), for policies that
 * distribute cores by FLOP/s. They count if the hardware does not count them. Best called before
 * hocket_malleable_begin; it may change later, and is sent at the next control point. The value of rank 0 counts; call
 * it in every process, since any may become rank 0. Local. Errors: ARGUMENT (not finite, or below 0). */
HOCKET_API int hocket_malleable_declare_flop(hocket_malleable* job, double flop_per_iteration);

/* Frees the job, its arrays and its communicators, and lets sleeping processes end (see docs/malleable.md). Collective
 * over the computing processes, which wait for each other; local in a process that leaves. `job` and *job
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
