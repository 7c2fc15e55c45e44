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
 *   |    |   _array, _length, _drop        (_array: takes what is there)  the same; optional
 *   |    |   iterate                                                      the same
 *   |    +-- hocket_malleable_balance, _request, _wait                    the same; optional
 *   |    after the last iteration, or in a process that leaves (_left returns 1)
 *   +- hocket_malleable_free               the same                       the same; one that leaves calls it alone
 *
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation), named before the MPI library itself.
 * Resizes are requested with `hocket resize`, by HOCKET_RESIZE, or with hocket_malleable_request. They happen in
 * hocket_malleable_next, between two iterations: its *control point*. Without a resize, a control point costs one small
 * broadcast. With weighted arrays, the processes also compare their computing times now and then (see
 * docs/malleable.md, "Balance"), and after any control point the ranges may be new.
 *
 * Terms: *constant* data are not written after hocket_malleable_begin, and may move while the application computes;
 * *variable* data move at the control point. A program that MPI_Comm_spawn started, and that calls
 * hocket_malleable_create, counts as one that joined later.
 *
 * - Who calls: "collective" means all processes of hocket_malleable_comm, in the same order, with the same arguments
 *   except for pointers. Each function states if it is collective or local.
 * - Threads: one thread at a time uses a job, the one that calls MPI.
 * - Ownership: the caller owns the job from hocket_malleable_create to hocket_malleable_free. The communicator belongs
 *   to hocket, and so do the arrays, unless the program allocates them (hocket_malleable_memory).
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

/* Distribution of the elements 0 … length - 1 of an array. With these, each process holds one range, in the order of
 * ranks. With those of hocket_malleable_cyclic, _rectangles and _owners it holds extents: its memory has their elements
 * in ascending order, without gaps. */
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

/* Creates the job for the processes of `comm`, an intracommunicator, instead of those of MPI_COMM_WORLD: the others of
 * the world take no part, and do not become fewer. Collective over `comm`; the caller may free `comm` afterwards. At
 * most one job exists at a time in a program. A process that joins has an MPI_COMM_WORLD of its own, all of which
 * joins, so its `comm` is ignored, and may be MPI_COMM_NULL. A first process that leaves ends only with the others of
 * its MPI_COMM_WORLD, so it sleeps, or waits in MPI_Finalize, until these end. Errors: as above; ARGUMENT also if
 * `comm` is MPI_COMM_NULL in a process that does not join, or an intercommunicator. */
HOCKET_API int hocket_malleable_create_on(MPI_Comm comm, hocket_malleable** job);

/* Returns 1 if a resize started this process: hocket_malleable_begin fills what it registers. Returns 0 in a process
 * that was there from the start. Local. */
HOCKET_API int hocket_malleable_joined(const hocket_malleable* job);

/* Registers an array of `length` elements of `type` and allocates this process's part. All processes that run the
 * program call it, including those that join later, with the same name, type, length, distribution and kind, in the
 * same order. Before hocket_malleable_begin it is local and does not communicate.
 *
 * It may also come later, between two calls of hocket_malleable_next. Then it is collective, and new elements are zero
 * (with hocket_malleable_memory: what the program's memory holds). A process that joins, or that slept, after this has
 * the elements already when it enters the loop: there the same call is local, and *data becomes the address of the
 * elements. So a program calls it in each process that has not called it yet: `if (it >= 10 && !y)
 * hocket_malleable_array(…, &y)`.
 *
 * `type` is a type without gaps (MPI_DOUBLE, a contiguous type of a whole row, …), of at most 1 MiB. `distribution` is
 * HOCKET_MALLEABLE_REPLICATED, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_WEIGHTED, the value that hocket_malleable_csr
 * returned (like the rows of that matrix), or one of hocket_malleable_cyclic, _rectangles or _owners. `data` is the
 * address of a pointer, e.g. of a `double*`. hocket writes to this pointer now and after each resize, so it must stay
 * where it is until hocket_malleable_free. The memory belongs to hocket, is zeroed at first, and aligned to a page. All
 * processes must have the same data format, because bytes are moved unchanged. Errors: ARGUMENT, MEMORY; after
 * hocket_malleable_begin in all processes alike. */
HOCKET_API int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length,
                                      int distribution, int kind, void* data);

/* Elements first … first + count - 1 of an array. */
typedef struct {
  int64_t first;
  int64_t count;
} hocket_malleable_extent;

/* Registers a block-cyclic distribution: blocks of `block` elements are dealt to the ranks in turn. *distribution
 * receives a value for hocket_malleable_array. Local; all processes register the same, in the same order as arrays.
 * What each block costs at a resize is some tens of bytes and nanoseconds: blocks should have kilobytes. Errors:
 * ARGUMENT. */
HOCKET_API int hocket_malleable_cyclic(hocket_malleable* job, int64_t block, int* distribution);

/* Registers a two-dimensional distribution of arrays of rows * columns elements, which follow each other by rows. The
 * ranks form a grid as square as their number allows, with at least as many columns as rows: 12 are 3 rows of 4. They
 * follow each other by rows of the grid, and each holds a rectangle (hocket_malleable_rectangle). Its rows and columns
 * are shared out as with HOCKET_MALLEABLE_BLOCK, and lie by rows, without gaps, in its memory. Otherwise like
 * hocket_malleable_cyclic. */
HOCKET_API int hocket_malleable_rectangles(hocket_malleable* job, int64_t rows, int64_t columns, int* distribution);

/* A function of the program that says which elements of an array of `length` elements belong to `rank` of `ranks`. It
 * writes at most `capacity` extents, in ascending order and none of them empty, and returns how many there are; if
 * there are more, it is called again with room for them. Each element belongs to exactly one rank. The result must
 * depend on the arguments alone: every process calls the function for every rank, a process that joins also for numbers
 * of ranks that are past. Called in functions of this header, by the thread that calls them. */
typedef int64_t (*hocket_malleable_owner)(void* context, int64_t length, int ranks, int rank, int64_t capacity,
                                          hocket_malleable_extent* extents);

/* Registers a distribution by a function of the program, before hocket_malleable_begin. If the function is wrong for
 * the initial number of processes, hocket_malleable_array fails; if it is for another one, a resize to that number is
 * refused. `context` is passed on. Otherwise like hocket_malleable_cyclic. */
HOCKET_API int hocket_malleable_owners(hocket_malleable* job, hocket_malleable_owner owner, void* context,
                                       int* distribution);

/* A function of the program that allocates like realloc: memory == NULL allocates `bytes` (at least 1), bytes == 0
 * frees, else it changes the size, keeps what fits, and may return another address. NULL: there is no memory. The first
 * allocation of an array may return memory that the program has filled already. During a resize an array may have two
 * allocations at a time. Called in functions of this header, by the thread that calls them. */
typedef void* (*hocket_malleable_allocator)(void* context, void* memory, int64_t bytes);

/* Lets the program allocate the memory of what it registers from now on, by `allocator`; NULL: hocket does. Such memory
 * is not zeroed. All of it is freed at the latest in hocket_malleable_free. `context` is passed on. Local. Errors:
 * ARGUMENT.
 */
HOCKET_API int hocket_malleable_memory(hocket_malleable* job, hocket_malleable_allocator allocator, void* context);

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
 * Before hocket_malleable_begin: MPI_COMM_WORLD, or the `comm` of hocket_malleable_create_on. Local. */
HOCKET_API MPI_Comm hocket_malleable_comm(const hocket_malleable* job);

/* Returns 1 if this process is no longer needed: it iterates no more, has no data, and so prints no results. It frees
 * its job and ends; the others continue without it. Local. */
HOCKET_API int hocket_malleable_left(const hocket_malleable* job);

/* Changes the length of an array, between two calls of hocket_malleable_next. Elements below both lengths keep their
 * values, and may get another process and address; new elements are zero. Not for an array of
 * hocket_malleable_rectangles or like the rows of a matrix. Collective. Errors: ARGUMENT, MEMORY, in all processes
 * alike; then nothing has changed. */
HOCKET_API int hocket_malleable_length(hocket_malleable* job, const char* name, int64_t length);

/* Frees an array, between two calls of hocket_malleable_next. Its pointer becomes NULL, in a process that joins or
 * sleeps when it enters the loop. The name may be registered again. Collective. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_drop(hocket_malleable* job, const char* name);

/* Returns the range that a rank of hocket_malleable_comm holds of an array or matrix: elements (rows) *first to *first
 * + *count - 1. A negative rank means this process. Not for arrays of hocket_malleable_cyclic, _rectangles and _owners.
 * Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first,
                                      int64_t* count);

/* Writes the extents that a rank holds of any array or matrix, at most `capacity` of them, in ascending order. *number
 * receives how many there are, *elements how many elements they have; both may be NULL. A negative rank means this
 * process. Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_extents(const hocket_malleable* job, const char* name, int rank, int64_t capacity,
                                        hocket_malleable_extent* extents, int64_t* number, int64_t* elements);

/* Returns the rows and columns that a rank holds of an array of hocket_malleable_rectangles. A negative rank means this
 * process. Local. Errors: ARGUMENT. */
HOCKET_API int hocket_malleable_rectangle(const hocket_malleable* job, const char* name, int rank,
                                          hocket_malleable_extent* rows, hocket_malleable_extent* columns);

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

/* Requests a resize to `processes` processes. It begins at the next control point; where hocketd runs, hocketd is asked
 * at once, which answers within a few control points, and refuses what exceeds the cores. One line on stderr says why a
 * resize is not made. One resize at a time: hocketd refuses a second one, and without hocketd the later one holds.
 *
 * `methods` selects how this resize is made, by names of docs/malleable.md joined by '/', in any order, such as
 * "baseline/single-async/node/collective". The environment of the job selects what the names leave open. NULL or "":
 * everything. A method that this MPI does not support is replaced, with one line.
 *
 * Collective in that all processes call it with the same arguments after the same control point; it does not
 * communicate. Errors: ARGUMENT (before hocket_malleable_begin, in a process that leaves, fewer than one process, an
 * unknown name, or two names for one choice). */
HOCKET_API int hocket_malleable_request(hocket_malleable* job, int64_t processes, const char* methods);

/* Makes the next call of hocket_malleable_next wait until a pending resize is complete or given up, for `limit_s`
 * seconds at most; then it continues without the resize, with one line on stderr, and the resize stays pending. A
 * resize is pending from its request on (a request with a later iteration: from that iteration on).
 *
 * If the iterations are used up, hocket_malleable_next completes all pending resizes and then returns 0. Communicator,
 * ranges and arrays may then be new, and so hocket_malleable_left. Processes that join in this way iterate no more:
 * their hocket_malleable_next returns 0. Without a wait, a resize that is not complete at the end is not made. Where
 * processes wait for each other or for data, HOCKET_RESIZE_MAX_S bounds the time, too.
 *
 * Collective in the same way. Errors: ARGUMENT (before hocket_malleable_begin, or `limit_s` is not above 0). */
HOCKET_API int hocket_malleable_wait(hocket_malleable* job, double limit_s);

/* Times of a resize, in seconds; docs/malleable.md, "Times". */
typedef struct hocket_malleable_times {
  int64_t number;         /* resizes completed so far in the life of the application; 0: none, and all else is 0 */
  int64_t sources;        /* processes before */
  int64_t destinations;   /* processes after */
  int64_t iteration;      /* with which they continued */
  int64_t started;        /* new processes */
  int64_t woken;          /* processes that slept, and are used again */
  int64_t bytes_moved;    /* from process to process */
  int64_t bytes_kept;     /* that stayed in their process */
  double wait_s;          /* from the request to the begin */
  double spawn_s;         /* until the new processes are merged with the old ones */
  double spawn_stopped_s; /* part of it in which the program did not compute */
  double constant_s;      /* redistribution of constant data */
  double constant_stopped_s;
  double variable_s; /* redistribution of variable data, in which the program does not compute */
  double resume_s;   /* new communicators, and arrays put in place; the program does not compute */
  double stopped_s;  /* all parts in which the program did not compute */
  double total_s;    /* from the begin, with the iterations in between, until the destinations continue */
} hocket_malleable_times;

/* Stores the times of the last resize that was completed, whoever requested it and whether hocketd runs or not. All
 * ranks of hocket_malleable_comm get the same numbers, but each measures `variable_s`, `resume_s`, and their part of
 * the sums by its own clock. A redistribution that keeps the number of processes does not count. Local. Errors:
 * ARGUMENT. */
HOCKET_API int hocket_malleable_last_times(const hocket_malleable* job, hocket_malleable_times* times);

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
HOCKET_API int hocket_malleable_create_on_f(MPI_Fint comm, hocket_malleable** job);
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
