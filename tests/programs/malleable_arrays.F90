! Checks each element of a block-cyclic array, of one that is distributed by a function of the program, and of one that
! comes, gets another length and goes, at each of 12 iterations. Rank 0 prints "ok N processes" at the end.
module owners_of_elements
  use, intrinsic :: iso_c_binding
  implicit none
contains
  ! Gives each rank one range, the last rank the first one.
  integer(c_int64_t) function owners(context, length, ranks, rank, capacity, extents) bind(C)
    type(c_ptr), value :: context
    integer(c_int64_t), value :: length, capacity
    integer(c_int), value :: ranks, rank
    integer(c_int64_t), intent(inout) :: extents(2, *)
    integer(c_int64_t) :: share
    share = (length + ranks - 1) / ranks
    extents(1, 1) = min(length, share * (ranks - 1 - rank))
    extents(2, 1) = min(length, share * (ranks - rank)) - extents(1, 1)
    owners = merge(1, 0, extents(2, 1) > 0 .and. capacity > 0)
  end function
end module

program malleable_arrays
  use, intrinsic :: iso_c_binding
  use hocket_malleable
  use owners_of_elements
  implicit none
  include 'mpif.h'
  integer(c_int64_t), parameter :: length = 101, longer = 150, last = 12
  integer(c_int64_t) :: it, rows(2), columns(2)
  type(c_ptr) :: job
  type(c_ptr), target, save :: a, b, c, grid
  integer(c_int) :: by_block, by_owners, by_grid
  integer :: rank, ranks, error
  call MPI_Init(error)
  c = c_null_ptr
  call check(hocket_malleable_create(job))
  call check(hocket_malleable_cyclic(job, 7_c_int64_t, by_block))
  call check(hocket_malleable_owners(job, c_funloc(owners), c_null_ptr, by_owners))
  call check(hocket_malleable_rectangles(job, 9_c_int64_t, 5_c_int64_t, by_grid))
  call check(hocket_malleable_array(job, "a"//c_null_char, MPI_DOUBLE_PRECISION, length, by_block, &
                                    HOCKET_MALLEABLE_VARIABLE, a))
  call check(hocket_malleable_array(job, "b"//c_null_char, MPI_DOUBLE_PRECISION, length, by_owners, &
                                    HOCKET_MALLEABLE_VARIABLE, b))
  call check(hocket_malleable_array(job, "grid"//c_null_char, MPI_DOUBLE_PRECISION, 45_c_int64_t, by_grid, &
                                    HOCKET_MALLEABLE_CONSTANT, grid))
  if (hocket_malleable_joined(job) == 0) then
    call set("a"//c_null_char, a, 0_c_int64_t)
    call set("b"//c_null_char, b, 0_c_int64_t)
  end if
  call check(hocket_malleable_begin(job, 0_c_int64_t))
  do while (hocket_malleable_next(job, last, it) > 0)
    if (it >= 3 .and. it < 9 .and. .not. c_associated(c)) then
      call check(hocket_malleable_array(job, "c"//c_null_char, MPI_DOUBLE_PRECISION, merge(longer, length, it > 6), &
                                        by_block, HOCKET_MALLEABLE_VARIABLE, c))
      if (it == 3) call set("c"//c_null_char, c, it)
    end if
    if (it == 6) then
      call check(hocket_malleable_length(job, "c"//c_null_char, longer))
      call set("c"//c_null_char, c, it)
    end if
    if (it == 9) call check(hocket_malleable_drop(job, "c"//c_null_char))
    if (it >= 9 .and. c_associated(c)) call check(-1)
    call verify("a"//c_null_char, a, it)
    call verify("b"//c_null_char, b, it)
    if (c_associated(c)) call verify("c"//c_null_char, c, it)
    call check(hocket_malleable_rectangle(job, "grid"//c_null_char, -1, rows, columns))
    if (rows(2) * columns(2) > 45 .or. rows(1) + rows(2) > 9 .or. columns(1) + columns(2) > 5) call check(-1)
    call set("a"//c_null_char, a, it + 1)
    call set("b"//c_null_char, b, it + 1)
    if (c_associated(c)) call set("c"//c_null_char, c, it + 1)
  end do
  if (hocket_malleable_left(job) == 0) then
    call MPI_Comm_rank(hocket_malleable_comm(job), rank, error)
    call MPI_Comm_size(hocket_malleable_comm(job), ranks, error)
    if (rank == 0) print '(A, I0, A)', "ok ", ranks, " processes"
  end if
  call check(hocket_malleable_free(job))
  call MPI_Finalize(error)
contains
  ! Sets each element to its index plus 1000 for each iteration done.
  subroutine set(name, data, iteration)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: data
    integer(c_int64_t), intent(in) :: iteration
    call visit(name, data, iteration, .true.)
  end subroutine

  subroutine verify(name, data, iteration)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: data
    integer(c_int64_t), intent(in) :: iteration
    call visit(name, data, iteration, .false.)
  end subroutine

  subroutine visit(name, data, iteration, sets)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: data
    integer(c_int64_t), intent(in) :: iteration
    logical, intent(in) :: sets
    integer(c_int64_t) :: extents(2, 64), number, elements, k, e, i
    double precision, pointer :: x(:)
    call check(hocket_malleable_extents(job, name, -1, 64_c_int64_t, extents, number, elements))
    call c_f_pointer(data, x, [elements])
    i = 0
    do k = 1, number
      do e = extents(1, k), extents(1, k) + extents(2, k) - 1
        i = i + 1
        if (sets) x(i) = dble(e + 1000 * iteration)
        if (x(i) /= dble(e + 1000 * iteration)) call check(-1)
      end do
    end do
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status < 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
