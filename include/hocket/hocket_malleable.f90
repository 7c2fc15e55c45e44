! hocket_malleable: an MPI application in Fortran that grows and shrinks while it runs.
!
! Compile this file with your program. malleable.h, in the same directory, describes each function: who must call it,
! ownership and errors. Differences in Fortran:
!   - names end in a null character: "x" // c_null_char;
!   - types of elements and communicators are handles of `use mpi` (of mpi_f08 their part mpi_val);
!   - an array is registered by a variable of type(c_ptr), which must stay where it is until hocket_malleable_free, so
!     give it the attributes target and save, or let it be part of an allocated object. hocket writes into it, also at
!     hocket_malleable_next: after each registration and when hocket_malleable_next returned HOCKET_MALLEABLE_RESIZED,
!     call c_f_pointer with it and the part's size (hocket_malleable_range) to get the array;
!   - an extent is two elements of an array of c_int64_t: the first element and their number;
!   - functions of the program are bind(C) and given by c_funloc;
!   - ranges of HOCKET_MALLEABLE_WEIGHTED may be new after any iteration: hocket balances them by itself until the
!     program calls hocket_malleable_balance;
!   - indexes of a sparse matrix, first elements and iterations count from 0, as in C.
module hocket_malleable
  use, intrinsic :: iso_c_binding, only: c_ptr, c_funptr, c_int, c_int64_t, c_double, c_char
  implicit none
  private :: c_ptr, c_funptr, c_int, c_int64_t, c_double, c_char

  ! Return codes; errors are negative.
  integer(c_int), parameter :: HOCKET_OK = 0, HOCKET_ERROR_ARGUMENT = -1, HOCKET_ERROR_MEMORY = -6
  ! Results of hocket_malleable_next that begin an iteration.
  integer(c_int), parameter :: HOCKET_MALLEABLE_ITERATE = 1, HOCKET_MALLEABLE_RESIZED = 2
  ! Distributions of the elements of an array.
  integer(c_int), parameter :: HOCKET_MALLEABLE_REPLICATED = -1, HOCKET_MALLEABLE_BLOCK = -2, &
      HOCKET_MALLEABLE_WEIGHTED = -3, HOCKET_MALLEABLE_NONZEROS = -4
  ! Kinds of data: not written, or written, after hocket_malleable_begin.
  integer(c_int), parameter :: HOCKET_MALLEABLE_CONSTANT = 0, HOCKET_MALLEABLE_VARIABLE = 1

  ! Times of a resize, in seconds; malleable.h describes each.
  type, bind(C) :: hocket_malleable_times
    integer(c_int64_t) :: number, sources, destinations, iteration, started, woken, bytes_moved, bytes_kept
    real(c_double) :: wait_s, spawn_s, spawn_stopped_s, constant_s, constant_stopped_s, variable_s, resume_s, &
        stopped_s, total_s
  end type

  interface
    integer(c_int) function hocket_malleable_create(job) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: job
    end function

    integer(c_int) function hocket_malleable_create_on(comm, job) bind(C, name="hocket_malleable_create_on_f")
      import :: c_int, c_ptr
      integer(c_int), value :: comm
      type(c_ptr), intent(out) :: job
    end function

    integer(c_int) function hocket_malleable_joined(job) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: job
    end function

    integer(c_int) function hocket_malleable_array(job, name, type, length, distribution, kind, data) &
        bind(C, name="hocket_malleable_array_f")
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: type, distribution, kind
      integer(c_int64_t), value :: length
      type(c_ptr), intent(inout), target :: data
    end function

    integer(c_int) function hocket_malleable_cyclic(job, block, distribution) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: job
      integer(c_int64_t), value :: block
      integer(c_int), intent(out) :: distribution
    end function

    integer(c_int) function hocket_malleable_rectangles(job, rows, columns, distribution) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: job
      integer(c_int64_t), value :: rows, columns
      integer(c_int), intent(out) :: distribution
    end function

    integer(c_int) function hocket_malleable_owners(job, owner, context, distribution) bind(C)
      import :: c_int, c_ptr, c_funptr
      type(c_ptr), value :: job, context
      type(c_funptr), value :: owner
      integer(c_int), intent(out) :: distribution
    end function

    integer(c_int) function hocket_malleable_memory(job, allocator, context) bind(C)
      import :: c_int, c_ptr, c_funptr
      type(c_ptr), value :: job, context
      type(c_funptr), value :: allocator
    end function

    integer(c_int) function hocket_malleable_csr(job, name, rows, distribution, kind, starts, column_type, columns, &
        value_type, values, rows_of) bind(C, name="hocket_malleable_csr_f")
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: rows
      integer(c_int), value :: distribution, kind, column_type, value_type
      type(c_ptr), intent(inout), target :: starts, columns, values
      integer(c_int), intent(out) :: rows_of
    end function

    integer(c_int) function hocket_malleable_csr_reserve(job, name, nonzeros) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: nonzeros
    end function

    integer(c_int) function hocket_malleable_begin(job, first) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: job
      integer(c_int64_t), value :: first
    end function

    integer(c_int) function hocket_malleable_comm(job) bind(C, name="hocket_malleable_comm_f")
      import :: c_int, c_ptr
      type(c_ptr), value :: job
    end function

    integer(c_int) function hocket_malleable_left(job) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: job
    end function

    integer(c_int) function hocket_malleable_range(job, name, rank, first, count) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: rank
      integer(c_int64_t), intent(out) :: first, count
    end function

    integer(c_int) function hocket_malleable_extents(job, name, rank, capacity, extents, number, elements) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: rank
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(inout) :: extents(2, *)
      integer(c_int64_t), intent(out) :: number, elements
    end function

    integer(c_int) function hocket_malleable_rectangle(job, name, rank, rows, columns) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: rank
      integer(c_int64_t), intent(out) :: rows(2), columns(2)
    end function

    integer(c_int) function hocket_malleable_length(job, name, length) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: length
    end function

    integer(c_int) function hocket_malleable_drop(job, name) bind(C)
      import :: c_int, c_ptr, c_char
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
    end function

    integer(c_int) function hocket_malleable_next(job, last, iteration) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: job
      integer(c_int64_t), value :: last
      integer(c_int64_t), intent(inout) :: iteration
    end function

    integer(c_int) function hocket_malleable_balance(job, busy_s) bind(C)
      import :: c_int, c_double, c_ptr
      type(c_ptr), value :: job
      real(c_double), value :: busy_s
    end function

    integer(c_int) function hocket_malleable_request(job, processes, methods) bind(C)
      import :: c_int, c_int64_t, c_ptr, c_char
      type(c_ptr), value :: job
      integer(c_int64_t), value :: processes
      character(kind=c_char), intent(in) :: methods(*)
    end function

    integer(c_int) function hocket_malleable_wait(job, limit_s) bind(C)
      import :: c_int, c_double, c_ptr
      type(c_ptr), value :: job
      real(c_double), value :: limit_s
    end function

    integer(c_int) function hocket_malleable_last_times(job, times) bind(C)
      import :: c_int, c_ptr, hocket_malleable_times
      type(c_ptr), value :: job
      type(hocket_malleable_times), intent(out) :: times
    end function

    integer(c_int) function hocket_malleable_declare_flop(job, flop_per_iteration) bind(C)
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: job
      real(c_double), value :: flop_per_iteration
    end function

    integer(c_int) function hocket_malleable_free(job) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: job
    end function
  end interface
end module
