! The same as jacobi.f90, with processes that become more and fewer.
module jacobi_iteration
  use mpi
  implicit none
  integer, parameter :: n = 200
contains
  ! The block of each process: as HOCKET_MALLEABLE_BLOCK shares out.
  subroutine share_out(comm, rank, ranks, counts, firsts)
    integer, intent(in) :: comm
    integer, intent(out) :: rank, ranks, counts(n), firsts(n)
    integer :: r, error
    call MPI_Comm_rank(comm, rank, error)
    call MPI_Comm_size(comm, ranks, error)
    do r = 1, ranks
      counts(r) = n / ranks
      if (r <= mod(n, ranks)) counts(r) = counts(r) + 1
      firsts(r) = sum(counts(1:r - 1))
    end do
  end subroutine

  subroutine fill(a, first)
    double precision, intent(out) :: a(:, :)
    integer, intent(in) :: first
    integer :: i, j
    do i = 1, size(a, 2)
      do j = 1, n
        a(j, i) = 1d0 / (1 + abs(first + i - j))
      end do
      a(first + i, i) = 16
    end do
  end subroutine

  subroutine iterate(comm, a, x, iteration)
    integer, intent(in) :: comm, iteration
    double precision, intent(in) :: a(:, :)
    double precision, intent(inout) :: x(:)
    double precision :: whole(n), r, mine, residual
    integer :: counts(n), firsts(n), rank, ranks, i, j, error
    call share_out(comm, rank, ranks, counts, firsts)
    call MPI_Allgatherv(x, size(x), MPI_DOUBLE_PRECISION, whole, counts, firsts, MPI_DOUBLE_PRECISION, comm, error)
    mine = 0
    do i = 1, size(x)
      r = 1
      do j = 1, n
        r = r - a(j, i) * whole(j)
      end do
      x(i) = x(i) + r / a(firsts(rank + 1) + i, i)
      mine = max(mine, abs(r))
    end do
    call MPI_Allreduce(mine, residual, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, error)
    if (rank == 0 .and. mod(iteration, 10) == 0) then
      print '("iteration ", i3, ", ", i0, " processes: residual ", es12.6)', iteration, ranks, residual
      flush (6)
    end if
  end subroutine
end module

program jacobi
  use, intrinsic :: iso_c_binding
  use jacobi_iteration
  use hocket_malleable
  implicit none
  integer(c_int64_t) :: iterations = 40
  character(8) :: argument
  type(c_ptr) :: job
  type(c_ptr), target, save :: a_data, x_data
  double precision, pointer :: a(:, :), x(:)
  integer(c_int64_t) :: it, first, count, length = n
  integer :: row, error
  call MPI_Init(error)
  call get_command_argument(1, argument)
  if (argument /= "") read (argument, *) iterations
  call MPI_Type_contiguous(n, MPI_DOUBLE_PRECISION, row, error)
  call MPI_Type_commit(row, error)
  call check(hocket_malleable_create(job))
  call check(hocket_malleable_array(job, "a"//c_null_char, row, length, HOCKET_MALLEABLE_BLOCK, &
                                    HOCKET_MALLEABLE_CONSTANT, a_data))
  call check(hocket_malleable_array(job, "x"//c_null_char, MPI_DOUBLE_PRECISION, length, HOCKET_MALLEABLE_BLOCK, &
                                    HOCKET_MALLEABLE_VARIABLE, x_data))
  call get_arrays()
  if (hocket_malleable_joined(job) == 0) call fill(a, int(first))
  call check(hocket_malleable_begin(job, 0_c_int64_t))
  do while (hocket_malleable_next(job, iterations, it) > 0)
    call get_arrays()
    call iterate(hocket_malleable_comm(job), a, x, int(it) + 1)
  end do
  call check(hocket_malleable_free(job))
  call MPI_Type_free(row, error)
  call MPI_Finalize(error)
contains
  ! This process's part of the arrays: both may be elsewhere after a control point.
  subroutine get_arrays()
    call check(hocket_malleable_range(job, "a"//c_null_char, -1, first, count))
    call c_f_pointer(a_data, a, [int(n, c_int64_t), count])
    call c_f_pointer(x_data, x, [count])
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status < 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
