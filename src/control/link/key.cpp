#include "link/key.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/descriptor.hpp"

namespace hocket::link {
namespace {

constexpr std::size_t least_bytes = 32;
constexpr std::size_t longest_bytes = 256;

Status check_owner(const std::string& path, int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Error{"cannot read the key " + path + ": " + error_text(errno)};
  if (!S_ISREG(about.st_mode)) return Error{"the key " + path + " is no file"};
  if (!is_trusted(about.st_uid))
    return Error{"the key " + path + " belongs to user " + std::to_string(about.st_uid) +
                 ", neither to this user nor to root"};
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error{"others may use the key " + path + ": 'chmod 600' it, and make a new one if somebody has read it"};
  return success();
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  constexpr const char* digits = "0123456789abcdef";
  for (const unsigned char byte : bytes) text.append({digits[byte >> 4U], digits[byte & 15U]});
  return text;
}

}  // namespace

Result<std::string> read_key(const std::string& path) {
  const Fd file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return Error{"cannot read the key " + path + ": " + error_text(errno) + "; hocketd --make-key makes one"};
  if (const Status ours = check_owner(path, file.get()); !ours) return ours.error();
  std::array<char, longest_bytes + 2> bytes{};
  const ssize_t n = read(file.get(), bytes.data(), bytes.size());
  if (n < 0) return Error{"cannot read the key " + path + ": " + error_text(errno)};
  std::string key{bytes.data(), static_cast<std::size_t>(n)};
  constexpr const char* blanks = " \t\r\n";
  key.erase(key.find_last_not_of(blanks) + 1);
  key.erase(0, key.find_first_not_of(blanks));
  if (key.size() >= least_bytes && key.size() <= longest_bytes) return key;
  return Error{"the key " + path + " has " + std::to_string(key.size()) + " bytes; it must have " +
               std::to_string(least_bytes) + " to " + std::to_string(longest_bytes)};
}

Status make_key(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  std::array<unsigned char, 32> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) return Error{"no random numbers for a key"};
  const std::string text = hexadecimal(random) + '\n';
  const Fd file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return Error{"cannot make the key " + path + ": " + error_text(errno)};
  if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(file.get()) == 0)
    return success();
  const int error = errno;
  unlink(path.c_str());
  return Error{"cannot write the key " + path + ": " + error_text(error)};
}

Result<std::string> secret_of_servers(const std::string& key) {
  constexpr std::string_view purpose = "hocket: secret of I/O servers";
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned bytes = 0;
  const auto* const text = reinterpret_cast<const unsigned char*>(purpose.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text, purpose.size(), hash.data(), &bytes) ==
      nullptr)
    return Error{"cannot compute the secret of I/O servers"};
  return hexadecimal({hash.data(), bytes});
}

}  // namespace hocket::link
