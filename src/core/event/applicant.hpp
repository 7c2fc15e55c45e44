// For whom an I/O server stores what it holds of a file: it joins the application as a further member, and asks for the
// application's turn at the target before it stores (docs/design/io-servers.md). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hocket::event {

// The operation that START_IO of the server names. The program of the application does not wait for it.
constexpr std::string_view write_back = "write-back";

struct Applicant {
  std::string job;          // as in HELLO of the application
  std::string application;  // the name that it requests
  std::string target;       // as in START_IO of the application
  std::string parts;        // likewise
  friend bool operator==(const Applicant&, const Applicant&) = default;
  friend auto operator<=>(const Applicant&, const Applicant&) = default;
};

// Returns the text form: the fields, separated by NUL. parse_applicant() inverts it, and returns nothing for another
// text, or if there is no job or target.
std::string text_of(const Applicant& applicant);
std::optional<Applicant> parse_applicant(std::string_view text);

}  // namespace hocket::event
