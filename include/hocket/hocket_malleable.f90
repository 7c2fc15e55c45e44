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
!   - ranges of HOCKET_MALLEABLE_WEIGHTED may be new after any iteration: hocket balances them by itself until the
!     program calls hocket_malleable_balance;
!   - indexes of a sparse matrix, first elements and iterations count from 0, as in C.
module hocket_malleable
  use, intrinsic :: iso_c_binding, only: c_ptr, c_int, c_int64_t, c_double, c_char
  implicit none
  private :: c_ptr, c_int, c_int64_t, c_double, c_char

  ! Return codes; errors are negative.
  integer(c_int), parameter :: HOCKET_OK = 0, HOCKET_ERROR_ARGUMENT = -1, HOCKET_ERROR_MEMORY = -6
  ! Results of hocket_malleable_next that begin an iteration.
  integer(c_int), parameter :: HOCKET_MALLEABLE_ITERATE = 1, HOCKET_MALLEABLE_RESIZED = 2
  ! Distributions of the elements of an array.
  integer(c_int), parameter :: HOCKET_MALLEABLE_REPLICATED = -1, HOCKET_MALLEABLE_BLOCK = -2, &
      HOCKET_MALLEABLE_WEIGHTED = -3, HOCKET_MALLEABLE_NONZEROS = -4
  ! Kinds of data: not written, or written, after hocket_malleable_begin.
  integer(c_int), parameter :: HOCKET_MALLEABLE_CONSTANT = 0, HOCKET_MALLEABLE_VARIABLE = 1

  interface
    integer(c_int) function hocket_malleable_create(job) bind(C)
      import :: c_int, c_ptr
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
