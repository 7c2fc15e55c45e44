#include "event/applicant.hpp"

#include <array>

namespace hocket::event {

std::string text_of(const Applicant& applicant) {
  return applicant.job + '\0' + applicant.application + '\0' + applicant.target + '\0' + applicant.parts;
}

std::optional<Applicant> parse_applicant(std::string_view text) {
  Applicant read;
  const std::array<std::string*, 4> fields{&read.job, &read.application, &read.target, &read.parts};
  for (std::string* const field : fields) {
    const std::size_t end = text.find('\0');
    const bool is_last = field == fields.back();
    if ((end == std::string_view::npos) != is_last) return std::nullopt;
    *field = text.substr(0, end);
    if (!is_last) text.remove_prefix(end + 1);
  }
  if (read.job.empty() || read.target.empty()) return std::nullopt;
  return read;
}

}  // namespace hocket::event
