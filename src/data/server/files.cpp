#include "server/files.hpp"

#include <fcntl.h>

#include <cstdlib>

#include "server/storage.hpp"

namespace hocket::server {

Result<Files> Files::in(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> canonical{realpath(directory.c_str(), nullptr), std::free};
  Fd root{canonical ? ::open(canonical.get(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1};
  if (!root) {
    return Error{"cannot serve the directory '" + directory + "': " + error_text(errno) + "; name another with --dir"};
  }
  return Files{canonical.get(), std::move(root)};
}

// Opens one descriptor for each direction that is requested, so that a read-only file can be opened to read. An
// absolute path must begin with the directory's canonical path.
Files::Found Files::open(std::string_view path, const transport::FileIdentity& wanted, bool reads, bool writes) {
  if (!reads && !writes) return {nullptr, EINVAL};
  if (path.find('\0') != std::string_view::npos) return {nullptr, EINVAL};
  if (path.starts_with('/')) {
    const std::string root = directory_ == "/" ? directory_ : directory_ + "/";
    if (!path.starts_with(root)) return {nullptr, EXDEV};
    path.remove_prefix(root.size());
  }
  const std::string below{path};
  OpenedFile readable;
  OpenedFile writable;
  if (reads) readable = open_beneath(root_.get(), below.c_str(), O_RDONLY);
  if (readable.error == 0 && writes) writable = open_beneath(root_.get(), below.c_str(), O_WRONLY);
  const int error = readable.error != 0 ? readable.error : writable.error;
  if (error != 0) return {nullptr, error};
  const transport::FileIdentity own = transport::identity_of((reads ? readable : writable).file.get());
  if (!transport::is_wanted(own, wanted)) return {nullptr, ESTALE};
  // Another process may have replaced the file between the two calls.
  if (reads && writes && transport::identity_of(writable.file.get()) != own) return {nullptr, ESTALE};
  FilePtr& file = files_[{own.device, own.inode}];
  if (!file) {
    file = std::make_shared<ServerFile>();
    file->number = ++last_;
    file->identity = {own.device, own.inode};
    file->path = below;
  }
  if (reads && !file->readable) file->readable = std::move(readable.file);
  if (writes && !file->writable) file->writable = std::move(writable.file);
  ++file->handles;
  return {file, 0};
}

FilePtr Files::add(std::string path, Fd readable, Fd writable) {
  auto file = std::make_shared<ServerFile>();
  file->number = ++last_;
  file->path = std::move(path);
  file->readable = std::move(readable);
  file->writable = std::move(writable);
  return file;
}

std::vector<FilePtr> Files::all() const {
  std::vector<FilePtr> all;
  all.reserve(files_.size());
  for (const auto& [identity, file] : files_) all.push_back(file);
  return all;
}

// A data set's openings are not counted.
void Files::forget(const FilePtr& file, const FileOpening& opening) {
  const auto counted = file->placements.find(opening.placement);
  if (counted != file->placements.end() && --counted->second == 0) file->placements.erase(counted);
}

void Files::close(const FilePtr& file, const FileOpening& opening) {
  --file->handles;
  forget(file, opening);
  forget_if_unused(file);
}

void Files::forget_if_unused(const FilePtr& file) {
  if (file->handles == 0 && file->outstanding.empty()) files_.erase(file->identity);
}

}  // namespace hocket::server
