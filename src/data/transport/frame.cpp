#include "transport/frame.hpp"

#include "transport/bytes.hpp"

namespace hocket::transport {
namespace {

constexpr std::uint32_t magic = 0x46544b48;  // "HKTF"
constexpr std::uint8_t version = 2;

bool is_known(std::uint8_t type) {
  return (type >= static_cast<std::uint8_t>(Type::prove) && type <= static_cast<std::uint8_t>(Type::call)) ||
         (type >= static_cast<std::uint8_t>(Type::challenge) && type <= static_cast<std::uint8_t>(Type::alive));
}

bool is_number(std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; }

// Returns what is wrong with the header's values; nullptr if nothing is. The values come from an untrusted peer, so
// each one that is used as a size or an offset is bounded.
const char* fault_of(const Header& header) {
  if ((header.flags & ~flag::all) != 0) return "an unknown flag";
  if (header.payload > most_payload) return "too long a payload";
  if (header.meta > most_meta) return "too long a meta part";
  if (!is_number(header.bytes, layout::limit)) return "a number of bytes out of range";
  if (!is_number(header.offset, layout::limit)) return "an offset out of range";
  if (!is_number(header.shared, layout::limit)) return "a place in the segment out of range";
  if (header.error < 0) return "an error below 0";
  if (header.payload != 0 && (header.payload != header.bytes || header.has(flag::shared))) {
    return "a payload that is not its data";
  }
  return nullptr;
}

// Decodes a list. Runs that touch are joined.
Result<std::vector<FileRun>> runs_of_list(std::string_view meta) {
  if (meta.empty() || meta.size() % list_bytes_per_run != 0) return Error{"a list that is cut off"};
  std::vector<FileRun> runs;
  runs.reserve(meta.size() / list_bytes_per_run);
  std::int64_t end = 0;
  for (const char* in = meta.data(); in != meta.data() + meta.size();) {
    FileRun run;
    run.at = get<std::int64_t>(in);
    run.length = get<std::uint32_t>(in);
    if (run.length == 0 || run.at < end || run.at > layout::limit - run.length) {
      return Error{"a list whose runs do not rise"};
    }
    if (!runs.empty() && run.at == end) {
      runs.back().length += run.length;
    } else {
      runs.push_back(run);
    }
    end = run.end();
  }
  return runs;
}

// Evaluates the view for a range of its data. The runs are counted before they are stored, which takes no loop over
// them.
Result<std::vector<FileRun>> runs_of_view(const layout::FileView& view, layout::Extent data) {
  if (!view.contains(data)) return Error{"data that the view does not have"};
  if (view.count_segments(data) > most_runs) return Error{"too many runs"};
  std::vector<FileRun> runs;
  layout::Segments segments = view.segments(data);
  while (const auto segment = segments.next()) runs.push_back({segment->at, segment->length});
  return runs;
}

}  // namespace

HeaderBytes encode(const Header& header) {
  HeaderBytes bytes{};
  char* out = put(bytes.data(), magic);
  out = put(out, version);
  out = put(out, static_cast<std::uint8_t>(header.type));
  out = put(out, header.flags);
  for (const std::uint64_t number : {header.sequence, header.request, header.handle, header.operation}) {
    out = put(out, number);
  }
  for (const std::int64_t number : {header.offset, header.bytes, header.shared}) out = put(out, number);
  out = put(out, header.payload);
  out = put(out, header.meta);
  out = put(out, header.error);
  put(out, header.number);
  return bytes;
}

Result<Header> decode(std::string_view bytes) {
  const char* in = bytes.data();
  if (get<std::uint32_t>(in) != magic) return Error{"no frame"};
  if (get<std::uint8_t>(in) != version) return Error{"a frame of another version"};
  const auto type = get<std::uint8_t>(in);
  if (!is_known(type)) return Error{"an unknown type"};
  Header header;
  header.type = static_cast<Type>(type);
  header.flags = get<std::uint16_t>(in);
  for (std::uint64_t* number : {&header.sequence, &header.request, &header.handle, &header.operation}) {
    *number = get<std::uint64_t>(in);
  }
  for (std::int64_t* number : {&header.offset, &header.bytes, &header.shared}) *number = get<std::int64_t>(in);
  header.payload = get<std::uint32_t>(in);
  header.meta = get<std::uint32_t>(in);
  header.error = get<std::int32_t>(in);
  header.number = get<std::uint32_t>(in);
  if (const char* fault = fault_of(header)) return Error{fault};
  return header;
}

std::string encode(std::span<const FileRun> runs) {
  std::string meta(runs.size() * list_bytes_per_run, '\0');
  char* out = meta.data();
  for (const FileRun& run : runs) {
    out = put(out, run.at);
    out = put(out, static_cast<std::uint32_t>(run.length));
  }
  return meta;
}

Result<std::vector<FileRun>> runs_of(const Header& header, std::string_view meta, const layout::FileView* view) {
  if (header.bytes == 0 || header.bytes > most_payload) return Error{"a request of no data, or of too many"};
  if (header.has(flag::list)) {
    auto runs = runs_of_list(meta);
    if (!runs) return runs;
    std::int64_t bytes = 0;
    for (const FileRun& run : runs.value()) bytes += run.length;
    if (bytes != header.bytes) return Error{"a list that does not have as many bytes as its data"};
    return runs;
  }
  if (header.offset > layout::limit - header.bytes) return Error{"data behind the last offset"};
  if (!header.has(flag::viewed)) return std::vector<FileRun>{{header.offset, header.bytes}};
  if (view == nullptr) return Error{"a view that was not sent"};
  return runs_of_view(*view, {header.offset, header.offset + header.bytes});
}

}  // namespace hocket::transport
