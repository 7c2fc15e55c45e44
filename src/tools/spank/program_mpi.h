// Finds out which MPI the program of a step uses, from the libraries that its file names. No Slurm.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mpi_kind { mpi_unknown, mpi_mpich, mpi_openmpi };

struct program {
  enum mpi_kind mpi;       // mpi_unknown: no file among the words names an MPI
  bool is_static;          // its file needs no dynamic loader: nothing can be preloaded
  bool is_tool;            // it is an interactive shell, or a daemon by which a launcher starts ranks
  const char* words_name;  // the word that names the application, without its directories; in `words`, or a constant
};

// The name of an MPI in file names and options: "mpich", "openmpi"; "" if it is unknown.
const char* mpi_name(enum mpi_kind mpi);

// The MPI of that name; mpi_unknown if there is none.
enum mpi_kind mpi_of_name(const char* name);

// The MPI that programs of this PMI usually have ("pmi2", "pmix", "pmix_v4"); mpi_unknown for others, and NULL.
enum mpi_kind mpi_of_pmi(const char* pmi);

// Looks at the `count` words of a step's command, as far as they name files: below `directory` if they have a relative
// path, in the directories of `path` (PATH of the step, or NULL) if they have none. Reads files; allocates no memory.
struct program examine_program(int count, char* const* words, const char* path, const char* directory);

// Reads from an ELF file which MPI it names, and whether it is static. Returns false if it is no ELF file of 64 bits
// that can be read.
bool read_program(const char* file, enum mpi_kind* mpi, bool* is_static);

// A checksum of the library: of the identity that the linker gave it, else of all its bytes. Two versions differ in it.
// Returns 0 if the file cannot be read.
unsigned long long checksum_of_library(const char* file);
