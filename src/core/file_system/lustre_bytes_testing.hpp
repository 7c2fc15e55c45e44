// Layouts of files as Lustre stores them, for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::file_system::testing {

// Bytes written in hexadecimal, as `getfattr -e hex -n lustre.lov FILE` prints them; spaces are for the reader.
inline std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  std::string pair;
  for (const char one : hex) {
    if (one == ' ') continue;
    pair += one;
    if (pair.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoul(pair, nullptr, 16)));
    pair.clear();
  }
  return bytes;
}

// A file of two stripes of 1 MiB on OST 3 and OST 11 (0x0b): magic, pattern, object id and sequence, stripe size,
// stripe count, generation; then object id and sequence, generation and index for each stripe.
inline const std::string v1 =
    "d00bd10b 01000000 2200000000000000 0104000002000000 00001000 0200 0000"
    "4500000000000000 0000000000000000 00000000 03000000"
    "4600000000000000 0000000000000000 00000000 0b000000";
// The same with a pool "fast", one stripe on OST 258.
inline const std::string v3 =
    "d00bd30b 01000000 2200000000000000 0104000002000000 00001000 0100 0000 66617374000000000000000000000000"
    "4500000000000000 0000000000000000 00000000 02010000";

// Parts of a composite: its header, and an entry for a component with flags, extent, place, and size.
inline const std::string composite_header_of_two =
    "d00bd60b 20010000 02000000 0000 0200 0000 000000000000 0000000000000000";
inline std::string entry(const std::string& flags, const std::string& extent, const std::string& offset,
                         const std::string& size) {
  return "01000000" + flags + extent + offset + size + "00000000 0000000000000000 00000000";
}
// Two components that divide a file at 4 MiB: v1, then v3, which has no objects unless `flags` say so.
inline std::string composite(const std::string& flags_of_second) {
  return composite_header_of_two + entry("10000000", "0000000000000000 0000400000000000", "80000000", "50000000") +
         entry(flags_of_second, "0000400000000000 ffffffffffffffff", "d0000000", "48000000") + v1 + v3;
}
inline const std::string has_objects = "10000000";
inline const std::string has_none = "00000000";

}  // namespace hocket::file_system::testing
