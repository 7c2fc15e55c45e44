#include "forward/file_data_servers.hpp"

#include <bit>

#include "file_system/ask_stripes.hpp"
#include "request_scheduler/settings.hpp"

namespace hocket::forward {
namespace {

int number_at(const file_system::FileStripes& stripes, std::int64_t offset) {
  const auto server = file_system::server_at(stripes, offset);
  return server ? static_cast<int>(*server % request_scheduler::most_data_servers) : -1;
}

}  // namespace

FileDataServers::ReadStripes FileDataServers::reader_for(const std::string& directory) {
  if (!file_system::tells_stripes(directory)) return {};
  return [](int descriptor) { return file_system::stripes_of(descriptor); };
}

int FileDataServers::at(FileKey file, int descriptor, std::int64_t offset) {
  if (must_ask(file, offset)) ask(file, descriptor);
  return known_at(file, offset);
}

void FileDataServers::ask(FileKey file, int descriptor) {
  auto stripes = read_(descriptor);
  const std::lock_guard lock(mutex_);
  KnownFile& known = files_[file];
  known.is_being_read = false;
  if (stripes) known.stripes = *std::move(stripes);
}

// An offset without a data server is asked for at its 1st, 2nd, 4th, 8th call and so on: some files never have one.
bool FileDataServers::must_ask(FileKey file, std::int64_t offset) {
  if (!read_) return false;
  const std::lock_guard lock(mutex_);
  if (files_.size() >= most_files && !files_.contains(file)) files_.clear();
  KnownFile& known = files_[file];
  const file_system::StripedExtent* const extent = file_system::extent_at(known.stripes, offset);
  const bool is_known = extent != nullptr && (extent->on_metadata || !extent->servers.empty());
  if (is_known || known.is_being_read) return false;
  known.is_being_read = std::has_single_bit(++known.in_vain);
  return known.is_being_read;
}

int FileDataServers::known_at(FileKey file, std::int64_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(file);
  return found == files_.end() ? -1 : number_at(found->second.stripes, offset);
}

void FileDataServers::forget() {
  const std::lock_guard lock(mutex_);
  files_.clear();
}

}  // namespace hocket::forward
