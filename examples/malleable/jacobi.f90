! Jacobi iteration for A x = (1, …, 1): each process holds a block of the rows of A (columns of `a`) and of x.
module jacobi_iteration
  use mpi
  implicit none
  integer, parameter :: n = 200
contains
  ! The block of each process.
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
  use jacobi_iteration
  implicit none
  integer :: iterations = 40
  character(8) :: argument
  double precision, allocatable :: a(:, :), x(:)
  integer :: counts(n), firsts(n), rank, ranks, it, error
  call MPI_Init(error)
  call get_command_argument(1, argument)
  if (argument /= "") read (argument, *) iterations
  call share_out(MPI_COMM_WORLD, rank, ranks, counts, firsts)
  allocate (a(n, counts(rank + 1)), x(counts(rank + 1)))
  x = 0
  call fill(a, firsts(rank + 1))
  do it = 1, iterations
    call iterate(MPI_COMM_WORLD, a, x, it)
  end do
  call MPI_Finalize(error)
end program
