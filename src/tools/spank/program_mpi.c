#include "spank/program_mpi.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The tables are those of python/hocket/mpi.py; tests/slurm/test_plugin.py compares them.
static const struct {
  const char* library;
  enum mpi_kind mpi;
} libraries[] = {
    {"libmpi.so.12", mpi_mpich},
    {"libmpich.so.12", mpi_mpich},
    {"libmpi.so.40", mpi_openmpi},
};
static const char* const shells[] = {"ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"};
static const char* const wrappers[] = {"env",     "nice",     "numactl", "taskset", "stdbuf", "time",
                                       "timeout", "valgrind", "gdb",     "strace",  "perf",   "setarch",
                                       "chrt",    "ionice",   "nohup",   "prlimit", "setsid"};
// Hydra and PRRTE start these as a step, and the ranks by them.
static const char* const daemons[] = {"hydra_bstrap_proxy", "hydra_pmi_proxy", "orted", "prted", "prte"};

enum { most_entries = 4096, most_notes_bytes = 65536 };  // of a dynamic section, of a segment of notes
static const uint64_t most_hashed_bytes = UINT64_C(256) << 20;
static const uint64_t hash_start = 14695981039346656037U;

#define LENGTH(table) (sizeof(table) / sizeof *(table))

// Reads exactly these bytes of a file. A mapping would be simpler, but ends slurmstepd if somebody truncates the file.
static bool read_at(int fd, uint64_t at, void* bytes, size_t count) {
  return at <= INT64_MAX && pread(fd, bytes, count, (off_t)at) == (ssize_t)count;
}

static int open_regular(const char* file) {
  struct stat about;
  if (stat(file, &about) != 0 || !S_ISREG(about.st_mode)) return -1;
  return open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool is_one_of(const char* word, const char* const* table, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (strcmp(word, table[i]) == 0) return true;
  return false;
}

static const char* base_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

const char* mpi_name(enum mpi_kind mpi) { return mpi == mpi_mpich ? "mpich" : mpi == mpi_openmpi ? "openmpi" : ""; }

enum mpi_kind mpi_of_name(const char* name) {
  return strcmp(name, "mpich") == 0 ? mpi_mpich : strcmp(name, "openmpi") == 0 ? mpi_openmpi : mpi_unknown;
}

enum mpi_kind mpi_of_pmi(const char* pmi) {
  if (pmi == NULL) return mpi_unknown;
  return strcmp(pmi, "pmi2") == 0 ? mpi_mpich : strncmp(pmi, "pmix", 4) == 0 ? mpi_openmpi : mpi_unknown;
}

static bool read_header(int fd, const Elf64_Ehdr* elf, unsigned number, Elf64_Phdr* header) {
  return read_at(fd, elf->e_phoff + (uint64_t)number * elf->e_phentsize, header, sizeof *header);
}

// Where in the file the bytes are that are loaded at this address; UINT64_MAX if none are.
static uint64_t offset_of(int fd, const Elf64_Ehdr* elf, uint64_t address) {
  Elf64_Phdr header;
  for (unsigned i = 0; i < elf->e_phnum && read_header(fd, elf, i, &header); ++i)
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
      return header.p_offset + (address - header.p_vaddr);
  return UINT64_MAX;
}

static enum mpi_kind mpi_of_library(int fd, uint64_t at) {
  for (size_t i = 0; i < LENGTH(libraries); ++i) {
    char name[16];
    const size_t bytes = strlen(libraries[i].library) + 1;
    if (bytes <= sizeof name && read_at(fd, at, name, bytes) && memcmp(name, libraries[i].library, bytes) == 0)
      return libraries[i].mpi;
  }
  return mpi_unknown;
}

// The MPI among the libraries that the dynamic section names.
static enum mpi_kind mpi_of_dynamic(int fd, const Elf64_Ehdr* elf, const Elf64_Phdr* dynamic) {
  uint64_t strings = UINT64_MAX;
  for (int pass = 0; pass < 2; ++pass) {  // the first one finds the names' table
    for (uint64_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn) && i < most_entries; ++i) {
      Elf64_Dyn entry;
      if (!read_at(fd, dynamic->p_offset + i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
      if (pass == 0 && entry.d_tag == DT_STRTAB) strings = offset_of(fd, elf, entry.d_un.d_ptr);
      if (pass == 0 || entry.d_tag != DT_NEEDED || strings == UINT64_MAX) continue;
      const enum mpi_kind mpi = mpi_of_library(fd, strings + entry.d_un.d_val);
      if (mpi != mpi_unknown) return mpi;
    }
  }
  return mpi_unknown;
}

static bool read_elf(int fd, enum mpi_kind* mpi, bool* is_static) {
  Elf64_Ehdr elf;
  if (!read_at(fd, 0, &elf, sizeof elf)) return false;
  if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64) return false;
  *mpi = mpi_unknown;
  *is_static = true;
  Elf64_Phdr header;
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    if (!read_header(fd, &elf, i, &header)) return false;
    if (header.p_type == PT_INTERP) *is_static = false;
    if (header.p_type == PT_DYNAMIC) *mpi = mpi_of_dynamic(fd, &elf, &header);
  }
  return true;
}

bool read_program(const char* file, enum mpi_kind* mpi, bool* is_static) {
  const int fd = open_regular(file);
  if (fd < 0) return false;
  const bool read = read_elf(fd, mpi, is_static);
  close(fd);
  return read;
}

// FNV-1a.
static uint64_t hash(uint64_t sum, const unsigned char* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) sum = (sum ^ bytes[i]) * 1099511628211U;
  return sum;
}

// Finds the linker's checksum of its output among the notes of a segment. Returns its hash; 0 if there is none.
static uint64_t build_id_in(int fd, const Elf64_Phdr* segment) {
  unsigned char id[64];
  Elf64_Nhdr note;
  for (uint64_t at = 0; at < segment->p_filesz && at < most_notes_bytes;) {
    char name[4] = "";
    if (!read_at(fd, segment->p_offset + at, &note, sizeof note)) return 0;
    const uint64_t text = at + sizeof note, described = text + ((uint64_t)note.n_namesz + 3) / 4 * 4;
    const bool is_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name && note.n_descsz <= sizeof id &&
                       read_at(fd, segment->p_offset + text, name, sizeof name) &&
                       memcmp(name, "GNU", sizeof name) == 0;
    if (is_id && read_at(fd, segment->p_offset + described, id, note.n_descsz))
      return hash(hash_start, id, note.n_descsz);
    at = described + ((uint64_t)note.n_descsz + 3) / 4 * 4;
  }
  return 0;
}

static uint64_t build_id_of(int fd) {
  Elf64_Ehdr elf;
  Elf64_Phdr header;
  uint64_t sum = 0;
  if (!read_at(fd, 0, &elf, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  for (unsigned i = 0; sum == 0 && i < elf.e_phnum && read_header(fd, &elf, i, &header); ++i)
    if (header.p_type == PT_NOTE) sum = build_id_in(fd, &header);
  return sum;
}

// Returns the hash of a file; 0 if it cannot be read, or is larger than any library.
static uint64_t hash_of_all(int fd) {
  unsigned char bytes[16384];
  uint64_t sum = hash_start, all = 0;
  ssize_t count = 0;
  while ((count = read(fd, bytes, sizeof bytes)) > 0) {
    if ((all += (uint64_t)count) > most_hashed_bytes) return 0;
    sum = hash(sum, bytes, (size_t)count);
  }
  return count < 0 ? 0 : sum;
}

unsigned long long checksum_of_library(const char* file) {
  const int fd = open_regular(file);
  if (fd < 0) return 0;
  const uint64_t id = build_id_of(fd);
  const uint64_t sum = id ? id : hash_of_all(fd);
  close(fd);
  return sum;
}

static bool is_program(const char* file) {
  struct stat about;
  return stat(file, &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 0111) != 0;
}

// Finds the program of a word, as execvp does. Returns false if there is none, or its path is too long.
static bool find_program(const char* word, const char* path, const char* directory, char file[PATH_MAX]) {
  if (strchr(word, '/')) {
    const bool absolute = *word == '/';
    const int length = snprintf(file, PATH_MAX, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", word);
    return length < PATH_MAX && is_program(file);
  }
  for (const char* at = path; at && *at;) {
    const int bytes = (int)strcspn(at, ":");
    if (bytes > 0 && bytes < PATH_MAX && snprintf(file, PATH_MAX, "%.*s/%s", bytes, at, word) < PATH_MAX &&
        is_program(file))
      return true;
    at += bytes + (at[bytes] == ':');
  }
  return false;
}

// The name of a Python program: that of its script or its module.
static const char* name_of_python(const char* interpreter, int count, char* const* words) {
  for (int i = 0; i < count; ++i) {
    const size_t length = strlen(words[i]);
    if (strcmp(words[i], "-m") == 0 && i + 1 < count) return words[i + 1];
    if (length > 3 && strcmp(words[i] + length - 3, ".py") == 0) return base_name(words[i]);
  }
  return interpreter;
}

struct program examine_program(int count, char* const* words, const char* path, const char* directory) {
  struct program found = {mpi_unknown, false, false, "program"};
  char file[PATH_MAX];
  int first = -1;
  for (int i = 0; i < count; ++i) {
    enum mpi_kind mpi = mpi_unknown;
    bool is_static = false;
    const char* const name = base_name(words[i]);
    if (*words[i] == '-' || is_one_of(name, wrappers, LENGTH(wrappers))) continue;
    if (!find_program(words[i], path, directory, file)) continue;
    const bool is_elf = read_program(file, &mpi, &is_static);
    if (first < 0) {
      first = i;
      found.is_static = is_elf && is_static;
    }
    if (mpi != mpi_unknown) {
      first = i;
      found.mpi = mpi;
      found.is_static = is_static;
      break;
    }
  }
  if (first < 0) return found;
  found.words_name = base_name(words[first]);
  found.is_tool = is_one_of(found.words_name, daemons, LENGTH(daemons)) ||
                  (first == count - 1 && is_one_of(found.words_name, shells, LENGTH(shells)));
  if (strncmp(found.words_name, "python", 6) == 0)
    found.words_name = name_of_python(found.words_name, count - first - 1, words + first + 1);
  return found;
}
