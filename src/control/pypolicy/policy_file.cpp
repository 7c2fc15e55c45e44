#include "pypolicy/policy_file.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "pypolicy/module.hpp"
#include "pypolicy/trusted_file.hpp"

namespace hocket::pypolicy {
namespace {

// Returns the directory of the running executable with a final slash.
std::string directory_of_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string program(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return program.substr(0, program.rfind('/') + 1);
}

// Returns the path of the module, or "". The candidates suit bin and libexec/hocket of an installation, and the
// folders of a build.
std::string find_module() {
  const std::string here = directory_of_program();
  for (const char* place : {"../" HOCKET_LIBDIR "/hocket/", "../../" HOCKET_LIBDIR "/hocket/", "", "../pypolicy/",
                            "../src/control/pypolicy/"}) {
    std::string path = here + place + module_file;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

}  // namespace

Result<PolicyFile> load(const std::string& path, const std::string& expected_sha256, MessageSink say) {
  const auto text = read_trusted(path);
  if (!text) return text.error();
  const std::string module = find_module();
  if (module.empty())
    return Error{path + ": this hocket was built without policies in Python (" + module_file +
                 " is not installed): install libpython3-dev and build it again"};
  // RTLD_GLOBAL lets modules that a policy imports find the interpreter's symbols. The library is never closed.
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  auto* run = library ? reinterpret_cast<RunFile*>(dlsym(library, run_file_name)) : nullptr;
  if (!run) return Error{path + ": the Python interpreter cannot be loaded: " + dlerror()};
  Result<PolicyFile> loaded = Error{};
  run({path, text.value(), expected_sha256}, std::move(say), loaded);
  return loaded;
}

}  // namespace hocket::pypolicy
