! checkpoint PATH: three collective writes of 16 bytes a rank, two reductions; by mpif.h, use mpi or use mpi_f08.
program checkpoint
#if defined(BINDING_F08)
  use mpi_f08
  implicit none
  type(MPI_Status) :: status
  type(MPI_File) :: file
#else
#if defined(BINDING_MPI)
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: status(MPI_STATUS_SIZE)
  integer :: file
#endif
  integer :: error, rank, ranks, i
  integer :: mine(4), sums(4)
  integer(kind=MPI_OFFSET_KIND) :: offset
  character(len=1024) :: path

  call get_command_argument(1, path)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  mine = rank
  do i = 1, 2
    call MPI_Allreduce(mine, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, error)
  offset = 16 * rank
  call MPI_File_write_at_all(file, offset, mine, 4, MPI_INTEGER, status, error)
  offset = 16 * (ranks + rank)
  call MPI_File_write_at_all(file, offset, mine, 4, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  offset = 16 * (2 * ranks + rank)
  call MPI_File_write_at_all(file, offset, mine, 4, MPI_INTEGER, status, error)
  call MPI_File_close(file, error)
  call MPI_Finalize(error)
end program checkpoint
