#include "link/munge.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket::link {
namespace {

// Numbers of munge.h, which never change there.
constexpr int option_valid_s = 4;
constexpr int option_socket = 8;
constexpr int failed_socket = 6;
constexpr int failed_timeout = 7;
constexpr int failed_invalid = 14;
constexpr int failed_expired = 15;
constexpr int failed_rewound = 16;
constexpr int failed_replayed = 17;

constexpr const char* library_name = "libmunge.so.2";

std::string text_of_failure(int failure, const char* own_words) {
  const std::string said = std::string{" ("} + (own_words == nullptr ? "unknown" : own_words) + ")";
  switch (failure) {
    case failed_socket:
    case failed_timeout: return "munged of this node does not answer: is it running?" + said;
    case failed_invalid: return "its MUNGE credential was made with another MUNGE key: all nodes need the same" + said;
    case failed_expired:
    case failed_rewound:
      return "its MUNGE credential is not valid at this time: do the clocks of both nodes agree?" + said;
    case failed_replayed: return "its MUNGE credential was used before" + said;
    default: return "MUNGE failed" + said;
  }
}

}  // namespace

// The functions of libmunge, with the types of munge.h.
struct Munge::Library {
  void* handle = nullptr;
  void* (*create)() = nullptr;
  void (*destroy)(void*) = nullptr;
  int (*set)(void*, int, ...) = nullptr;
  const char* (*words)(int) = nullptr;
  int (*encode)(char**, void*, const void*, int) = nullptr;
  int (*decode)(const char*, void*, void**, int*, uid_t*, gid_t*) = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }

  template <class Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  using Context = std::unique_ptr<void, void (*)(void*)>;
  Context context(const std::string& socket) const {
    Context made{create(), destroy};
    if (made && !socket.empty()) set(made.get(), option_socket, socket.c_str());
    return made;
  }
};

Result<std::shared_ptr<const Munge>> Munge::load(std::string socket) {
  auto library = std::make_shared<Library>();
  library->handle = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    const char* const why = dlerror();
    return Error{std::string{"MUNGE needs "} + library_name +
                 ", of the package libmunge2 or munge-libs: " + (why == nullptr ? "it cannot be loaded" : why)};
  }
  const bool complete =
      library->find("munge_ctx_create", library->create) && library->find("munge_ctx_destroy", library->destroy) &&
      library->find("munge_ctx_set", library->set) && library->find("munge_strerror", library->words) &&
      library->find("munge_encode", library->encode) && library->find("munge_decode", library->decode);
  if (!complete) return Error{std::string{library_name} + " lacks functions of MUNGE"};
  return std::shared_ptr<const Munge>{new Munge{std::move(library), std::move(socket)}};
}

Result<std::string> Munge::make(std::string_view payload, int valid_s) const {
  const auto context = library_->context(socket_);
  if (!context) return Error{"MUNGE has no memory"};
  library_->set(context.get(), option_valid_s, valid_s);
  char* text = nullptr;
  const int failure = library_->encode(&text, context.get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, void (*)(void*)> made{text, std::free};
  if (failure != 0 || !made) return Error{text_of_failure(failure, library_->words(failure))};
  return std::string{made.get()};
}

Result<Vouched> Munge::open(const std::string& credential) const {
  const auto context = library_->context(socket_);
  if (!context) return Error{"MUNGE has no memory"};
  void* bytes = nullptr;
  int size = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int failure = library_->decode(credential.c_str(), context.get(), &bytes, &size, &user, &group);
  const std::unique_ptr<void, void (*)(void*)> payload{bytes, std::free};  // also of a credential that is refused
  if (failure != 0) return Error{text_of_failure(failure, library_->words(failure))};
  return Vouched{user, std::string{static_cast<const char*>(payload.get()), static_cast<std::size_t>(size)}};
}

Status check_credential(const Munge& munge, const std::string& credential, std::string_view payload) {
  const auto vouched = munge.open(credential);
  if (!vouched) return vouched.error();
  if (vouched.value().payload != payload) return Error{"its MUNGE credential is for another connection"};
  if (is_trusted(vouched.value().user)) return success();
  return Error{"user " + std::to_string(vouched.value().user) +
               " runs it, by MUNGE: neither this hocketd's user nor root"};
}

}  // namespace hocket::link
