#include "file_system/ask_stripes.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "base/descriptor.hpp"

namespace hocket::file_system {
namespace {

constexpr std::uint64_t lustre_magic = 0x0bd00bd0;  // of statfs
constexpr std::uint64_t beegfs_magic = 0x19830326;
constexpr const char* lustre_attribute = "lustre.lov";
constexpr std::size_t largest_attribute = 65536;  // XATTR_SIZE_MAX

constexpr unsigned beegfs_mirrored = 3;
constexpr unsigned short most_targets = 256;  // of a file; each costs a system call
constexpr int beegfs_type = 'f';
constexpr int beegfs_info_number = 25;
constexpr int beegfs_target_number = 26;

std::uint64_t magic_in(const struct statfs& system) { return static_cast<std::uint64_t>(system.f_type) & 0xffffffffU; }

// Returns the number of the file's kind of file system; 0 if the system refuses to say.
std::uint64_t magic_of(const std::string& path) {
  struct statfs system {};
  return path.empty() || statfs(path.c_str(), &system) != 0 ? 0 : magic_in(system);
}
std::uint64_t magic_of(int descriptor) {
  struct statfs system {};
  return fstatfs(descriptor, &system) != 0 ? 0 : magic_in(system);
}

// `get(memory, bytes)` is getxattr on the file.
std::optional<FileStripes> on_lustre(FunctionRef<ssize_t(void*, std::size_t)> get) {
  std::vector<std::byte> attribute(largest_attribute);
  const ssize_t size = get(attribute.data(), attribute.size());
  if (size < 0) return std::nullopt;
  return lustre_stripes({attribute.data(), static_cast<std::size_t>(size)});
}

std::optional<FileStripes> on_beegfs(int descriptor) {
  return beegfs_stripes([&](unsigned long request, void* argument) { return ioctl(descriptor, request, argument); });
}

}  // namespace

const unsigned long beegfs_stripe_info = _IOR(beegfs_type, beegfs_info_number, BeegfsStripeInfo);
const unsigned long beegfs_stripe_target = _IOR(beegfs_type, beegfs_target_number, BeegfsStripeTarget);

std::optional<FileStripes> beegfs_stripes(AskFileSystem ask) {
  BeegfsStripeInfo info{};
  if (ask(beegfs_stripe_info, &info) != 0 || info.targets == 0 || info.targets > most_targets) return std::nullopt;
  StripedExtent all;
  all.stripe_bytes = info.chunk_size;
  for (unsigned short i = 0; i < info.targets; ++i) {
    BeegfsStripeTarget stripe{};
    stripe.index = i;
    if (ask(beegfs_stripe_target, &stripe) != 0) return std::nullopt;
    all.servers.push_back(stripe.target);
  }
  return FileStripes{info.pattern == beegfs_mirrored ? ServerKind::mirror : ServerKind::target, {std::move(all)}};
}

bool tells_stripes(const std::string& path) {
  const std::uint64_t magic = magic_of(path);
  return magic == lustre_magic || magic == beegfs_magic;
}

std::optional<FileStripes> stripes_of(const std::string& path) {
  const std::uint64_t magic = magic_of(path);
  if (magic == lustre_magic)
    return on_lustre([&](void* to, std::size_t bytes) { return getxattr(path.c_str(), lustre_attribute, to, bytes); });
  if (magic != beegfs_magic) return std::nullopt;
  const Fd file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  return file ? on_beegfs(file.get()) : std::nullopt;
}

std::optional<FileStripes> stripes_of(int descriptor) {
  const std::uint64_t magic = magic_of(descriptor);
  if (magic == lustre_magic)
    return on_lustre([&](void* to, std::size_t bytes) { return fgetxattr(descriptor, lustre_attribute, to, bytes); });
  return magic == beegfs_magic ? on_beegfs(descriptor) : std::nullopt;
}

}  // namespace hocket::file_system
