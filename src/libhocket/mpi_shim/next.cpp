#include "mpi_shim/next.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hocket::runtime {
namespace {

struct SymbolSearch {
  const char* symbol;
  void* found;
};

// Searches one loaded library, if it is an MPI library (libmpi.so.12, libmpich.so.12, libmpi.so.40, …). Returns 1 if it
// has the symbol, which ends dl_iterate_phdr.
int look_in(dl_phdr_info* library, std::size_t, void* argument) {
  auto* search = static_cast<SymbolSearch*>(argument);
  const char* slash = std::strrchr(library->dlpi_name, '/');
  if (std::strncmp(slash ? slash + 1 : library->dlpi_name, "libmpi", 6) != 0) return 0;
  void* handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return 0;
  search->found = dlsym(handle, search->symbol);
  dlclose(handle);  // drops this reference; the program's own keeps the library loaded
  return search->found ? 1 : 0;
}

void* search_from(void* first, const char* symbol) noexcept {
  SymbolSearch search{symbol, dlsym(first, symbol)};
  if (!search.found) dl_iterate_phdr(look_in, &search);
  return search.found;
}

void* find(void* first, const char* symbol) noexcept {
  void* const found = search_from(first, symbol);
  if (!found) {
    std::fprintf(stderr, "hocket: no loaded library has %s, which the program has called\n", symbol);
    std::abort();
  }
  return found;
}

}  // namespace

void* find_next(const char* symbol) noexcept { return find(RTLD_NEXT, symbol); }

void* find_loaded(const char* symbol) noexcept { return search_from(RTLD_NEXT, symbol); }

void* find_variable(const char* symbol) noexcept { return find(RTLD_DEFAULT, symbol); }

}  // namespace hocket::runtime
