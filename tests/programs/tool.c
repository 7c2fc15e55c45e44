// A second tool that wraps MPI, as users stack them. It counts three routines and writes "tool init I allreduce A write
// W" to $TOOL_LOG.<pid> at the end of the process. There are two builds: with TOOL_NEXT it calls the MPI_ function that
// is next in the loader's order, without it the PMPI_ function.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inits, allreduces, writes;

#ifdef TOOL_NEXT
#define NEXT(routine) ((__typeof__(&MPI_##routine))dlsym(RTLD_NEXT, "MPI_" #routine))
#else
#define NEXT(routine) PMPI_##routine
#endif

int MPI_Init(int* argc, char*** argv) {
  inits += 1;
  return NEXT(Init)(argc, argv);
}

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  allreduces += 1;
  return NEXT(Allreduce)(from, to, count, type, op, comm);
}

int MPI_File_write_at_all(MPI_File file, MPI_Offset at, const void* from, int count, MPI_Datatype type, MPI_Status* s) {
  writes += 1;
  return NEXT(File_write_at_all)(file, at, from, count, type, s);
}

__attribute__((destructor)) static void tell(void) {
  char name[1024];
  if (!inits || !getenv("TOOL_LOG")) return;
  snprintf(name, sizeof name, "%s.%d", getenv("TOOL_LOG"), getpid());
  FILE* log = fopen(name, "w");
  if (!log) return;
  fprintf(log, "tool init %d allreduce %d write %d\n", inits, allreduces, writes);
  fclose(log);
}
