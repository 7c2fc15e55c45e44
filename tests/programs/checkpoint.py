"""checkpoint.py PATH: three collective writes of 16 bytes a rank, two reductions, by mpi4py."""

import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
mine = bytearray([65 + comm.rank] * 16)
sums = bytearray(16)
for _ in range(2):
    comm.Allreduce(mine, sums)
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
for block in range(3):
    file.Write_at_all(16 * (block * comm.size + comm.rank), mine)
file.Close()
