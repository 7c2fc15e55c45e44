// Implements the functions of file.h: checks of their arguments, with an error text for each. No exception leaves a
// function (`guarded`). The accesses themselves are in stored_file.cpp and data_set.cpp.
#include "hocket/file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "api/access.hpp"
#include "api/file.hpp"
#include "api/lists.hpp"
#include "api/status.hpp"
#include "base/splitmix.hpp"
#include "event/server_map.hpp"
#include "transport/proof.hpp"

namespace {

using namespace hocket;
using api::fail;
using api::FileCall;
using api::guarded;
using api::no_null;

// Default and largest time limit of hocket_file_open for a data set, in seconds.
constexpr double default_wait_s = 600;
constexpr double longest_wait_s = 365 * 24 * 3600.0;
constexpr std::size_t longest_name = 255;

int wrong(const std::string& text) { return fail(HOCKET_ERROR_ARGUMENT, "hocket_file_open: " + text); }

// NULL counts as an empty text.
std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// Returns the application's name: as given, else the job of `hocket run`.
std::string application_of(const hocket_file_options& options) {
  const std::string given = text_of(options.application);
  return given.empty() ? text_of(std::getenv("HOCKET_JOB")) : given;
}

// Checks the mode of hocket_file_open; a version of a data set cannot be read and written at once.
int look_at_mode(int mode, bool data_set) {
  const int both = mode & (HOCKET_FILE_READ | HOCKET_FILE_WRITE);
  if ((mode & ~(HOCKET_FILE_READ | HOCKET_FILE_WRITE | HOCKET_FILE_CREATE)) != 0 || both == 0)
    return wrong(
        "'mode' is " + std::to_string(mode) +
        "; join HOCKET_FILE_READ, HOCKET_FILE_WRITE and HOCKET_FILE_CREATE by |, one of the first two at least");
  if ((mode & HOCKET_FILE_CREATE) != 0 && (both & HOCKET_FILE_WRITE) == 0)
    return wrong("'mode' has HOCKET_FILE_CREATE without HOCKET_FILE_WRITE");
  if (data_set && both == (HOCKET_FILE_READ | HOCKET_FILE_WRITE))
    return wrong(
        "a version of a data set is either read or written; 'mode' has HOCKET_FILE_READ and HOCKET_FILE_WRITE");
  return HOCKET_OK;
}

// Checks the numbers of the options.
int look_at_options(const hocket_file_options& options) {
  if (options.participants < 0)
    return wrong("'participants' is " + std::to_string(options.participants) + "; it must be at least 1");
  if (options.participants > 1 && options.group == 0)
    return wrong("'group' is 0; several participants need a number that no others give");
  if (options.readers < HOCKET_FILE_ANY_READERS)
    return wrong("'readers' is " + std::to_string(options.readers) +
                 "; it must be at least 1, or HOCKET_FILE_ANY_READERS");
  if (std::isnan(options.wait_s) || options.wait_s < 0)
    return wrong("'wait_s' must be a number of seconds, at least 0");
  return HOCKET_OK;
}

// Checks the names that go to the server of a data set.
int look_at_names(std::string_view name, const api::OpenArguments& opening) {
  const auto fits = [](std::string_view text) {
    return text.size() <= longest_name && std::none_of(text.begin(), text.end(), [](char c) {
             return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
           });
  };
  if (name.empty() || !fits(name))
    return wrong("the data set's name in '" + opening.path.substr(0, longest_name) +
                 "' must have 1 to 255 characters, none of them a control character");
  if (!fits(opening.application))
    return wrong("'application' must have at most 255 characters, none of them a control character");
  if (opening.participants > 1 && opening.application.empty())
    return wrong("'application' is not given; all participants must give the same one, or have HOCKET_JOB set");
  return HOCKET_OK;
}

// Fills in the defaults; 0 means "not set" in every option.
api::OpenArguments opening_of(const char* path, int mode, const hocket_file_options& options) {
  api::OpenArguments opening;
  opening.path = path;
  opening.mode = mode;
  opening.servers = text_of(options.servers);
  opening.application = application_of(options);
  opening.participants = options.participants == 0 ? 1 : options.participants;
  opening.group = options.group;
  opening.readers = options.readers == 0 ? 1 : std::max(options.readers, 0);
  opening.wait = from_s(std::min(options.wait_s == 0 ? default_wait_s : options.wait_s, longest_wait_s));
  return opening;
}

int open(const char* path, int mode, const hocket_file_options& options, std::unique_ptr<hocket_file>& file) {
  if (*path == '\0') return wrong("'path' is empty; name a file, or a data set as hocket:/NAME");
  const auto name = event::data_set_of(path);
  if (const int looked = look_at_mode(mode, name.has_value()); looked != HOCKET_OK) return looked;
  if (const int looked = look_at_options(options); looked != HOCKET_OK) return looked;
  const api::OpenArguments opening = opening_of(path, mode, options);
  // A file needs no application and no names for a server.
  if (!name) return open_stored(opening, file);
  if (const int looked = look_at_names(*name, opening); looked != HOCKET_OK) return looked;
  return open_data_set(opening, *name, file);
}

// Checks the file of a call. A forked process shares the connections of its parent, which two processes cannot use.
int look_at(const std::string& function, const hocket_file* file) {
  if (file == nullptr) return no_null(function.c_str(), "file");
  if (file->process == getpid()) return HOCKET_OK;
  return fail(HOCKET_ERROR_ARGUMENT, function + ": " + file->path + " was opened by process " +
                                         std::to_string(file->process) + ", which has forked; open it in this one");
}

// Checks a put or get.
int look_at(const api::FileCall& call, const api::Shape& shape, const void* data, bool writes) {
  const std::string function = call.function;
  if (const int looked = look_at(function, call.file); looked != HOCKET_OK) return looked;
  constexpr std::int64_t lowest_address = 4096;  // the first page of memory is never mapped
  if (data == nullptr && shape.bytes() > 0 && shape.memory.span().first < lowest_address)
    return no_null(call.function, "data");
  if (call.collective && call.operation == 0)
    return fail(HOCKET_ERROR_ARGUMENT, function + ": 'operation' is 0; it must be a number above 0");
  if ((call.file->mode & (writes ? HOCKET_FILE_WRITE : HOCKET_FILE_READ)) != 0) return HOCKET_OK;
  return fail(HOCKET_ERROR_ARGUMENT, function + ": " + call.file->path + " was not opened to " +
                                         (writes ? "write (HOCKET_FILE_WRITE)" : "read (HOCKET_FILE_READ)"));
}

// Casts const away, because one FileAccess serves both directions; a put only reads the memory.
int put(const FileCall& call, const api::Pattern& pattern, const void* data) {
  return guarded([&] { return api::perform(call, api::shape_of(pattern), const_cast<void*>(data), true, nullptr); });
}

int get(const FileCall& call, const api::Pattern& pattern, void* data, std::int64_t* got) {
  return guarded([&] { return api::perform(call, api::shape_of(pattern), data, false, got); });
}

// Returns the places that the list of a call names; NULL is a list without extents.
Result<api::Shape> shape_of(std::int64_t count, const std::int64_t* offsets, const std::int64_t* bytes) {
  if (count < 0) return Error{"'count' is " + std::to_string(count) + "; it must be at least 0"};
  if (count > 0 && (offsets == nullptr || bytes == nullptr))
    return Error{std::string{"'"} + (offsets == nullptr ? "offsets" : "bytes") + "' is NULL"};
  const auto size = static_cast<std::size_t>(count);
  return api::shape_of(api::ExtentList{{offsets, size}, {bytes, size}});
}

int put_list(const FileCall& call, std::int64_t count, const std::int64_t* offsets, const std::int64_t* bytes,
             const void* data) {
  return guarded(
      [&] { return api::perform(call, shape_of(count, offsets, bytes), const_cast<void*>(data), true, nullptr); });
}

int get_list(const FileCall& call, std::int64_t count, const std::int64_t* offsets, const std::int64_t* bytes,
             void* data, std::int64_t* got) {
  return guarded([&] { return api::perform(call, shape_of(count, offsets, bytes), data, false, got); });
}

}  // namespace

int api::perform(const FileCall& call, const Result<Shape>& shape, void* data, bool writes, std::int64_t* got) {
  if (got != nullptr) *got = 0;
  if (!shape) return fail(HOCKET_ERROR_ARGUMENT, std::string{call.function} + ": " + shape.error().text);
  const auto& [view, memory] = shape.value();
  if (const int looked = look_at(call, shape.value(), data, writes); looked != HOCKET_OK) return looked;
  FileAccess access{{writes, view, {0, memory.size()}, memory, static_cast<std::byte*>(data)}};
  // The number is the same in all processes of the group, and differs from those of other groups that also count from
  // 1.
  if (call.collective) access.operation = splitmix(call.file->group + call.operation * splitmix_step) | 1U;
  std::int64_t come = 0;
  const int done = call.file->access(access, come);
  if (done == HOCKET_OK && got != nullptr) *got = come;
  return done;
}

std::uint64_t api::group_number(std::uint64_t given, std::string_view application) {
  std::uint64_t mixed = given == 0 ? transport::new_number() : given;
  for (const char c : application) mixed = splitmix((mixed ^ static_cast<unsigned char>(c)) + splitmix_step);
  return splitmix(mixed) | 1U;  // 0 means not collective
}

int hocket_file_open(const char* path, int mode, const hocket_file_options* options, hocket_file** file) {
  return guarded([&] {
    if (file == nullptr) return no_null("hocket_file_open", "file");
    *file = nullptr;
    if (path == nullptr) return no_null("hocket_file_open", "path");
    std::unique_ptr<hocket_file> opened;
    const int done = open(path, mode, options == nullptr ? hocket_file_options{} : *options, opened);
    *file = opened.release();
    return done;
  });
}

int hocket_file_put(hocket_file* file, int64_t offset, const void* data, int64_t bytes) {
  return put({"hocket_file_put", file}, {offset, bytes, bytes, 1}, data);
}

int hocket_file_get(hocket_file* file, int64_t offset, void* data, int64_t bytes, int64_t* got) {
  return get({"hocket_file_get", file}, {offset, bytes, bytes, 1}, data, got);
}

int hocket_file_put_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes, int64_t count,
                            const void* data) {
  return put({"hocket_file_put_strided", file}, {offset, block_bytes, stride_bytes, count}, data);
}

int hocket_file_get_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes, int64_t count,
                            void* data, int64_t* got) {
  return get({"hocket_file_get_strided", file}, {offset, block_bytes, stride_bytes, count}, data, got);
}

int hocket_file_put_all(hocket_file* file, uint64_t operation, int64_t offset, const void* data, int64_t bytes) {
  return put({"hocket_file_put_all", file, true, operation}, {offset, bytes, bytes, 1}, data);
}

int hocket_file_get_all(hocket_file* file, uint64_t operation, int64_t offset, void* data, int64_t bytes,
                        int64_t* got) {
  return get({"hocket_file_get_all", file, true, operation}, {offset, bytes, bytes, 1}, data, got);
}

int hocket_file_put_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                int64_t stride_bytes, int64_t count, const void* data) {
  return put({"hocket_file_put_strided_all", file, true, operation}, {offset, block_bytes, stride_bytes, count}, data);
}

int hocket_file_get_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                int64_t stride_bytes, int64_t count, void* data, int64_t* got) {
  return get({"hocket_file_get_strided_all", file, true, operation}, {offset, block_bytes, stride_bytes, count}, data,
             got);
}

int hocket_file_put_list(hocket_file* file, int64_t count, const int64_t* offsets, const int64_t* bytes,
                         const void* data) {
  return put_list({"hocket_file_put_list", file}, count, offsets, bytes, data);
}

int hocket_file_get_list(hocket_file* file, int64_t count, const int64_t* offsets, const int64_t* bytes, void* data,
                         int64_t* got) {
  return get_list({"hocket_file_get_list", file}, count, offsets, bytes, data, got);
}

int hocket_file_put_list_all(hocket_file* file, uint64_t operation, int64_t count, const int64_t* offsets,
                             const int64_t* bytes, const void* data) {
  return put_list({"hocket_file_put_list_all", file, true, operation}, count, offsets, bytes, data);
}

int hocket_file_get_list_all(hocket_file* file, uint64_t operation, int64_t count, const int64_t* offsets,
                             const int64_t* bytes, void* data, int64_t* got) {
  return get_list({"hocket_file_get_list_all", file, true, operation}, count, offsets, bytes, data, got);
}

int hocket_file_size(hocket_file* file, int64_t* bytes) {
  return guarded([&] {
    if (const int looked = look_at("hocket_file_size", file); looked != HOCKET_OK) return looked;
    if (bytes == nullptr) return no_null("hocket_file_size", "bytes");
    return file->size(*bytes);
  });
}

int hocket_file_version(hocket_file* file, int64_t* version) {
  return guarded([&] {
    if (const int looked = look_at("hocket_file_version", file); looked != HOCKET_OK) return looked;
    if (version == nullptr) return no_null("hocket_file_version", "version");
    return file->version(*version);
  });
}

int hocket_file_flush(hocket_file* file) {
  return guarded([&] {
    const int looked = look_at("hocket_file_flush", file);
    return looked == HOCKET_OK ? file->flush() : looked;
  });
}

int hocket_file_close(hocket_file* file) {
  return guarded([&] {
    // Frees the file whatever happens, as file.h promises.
    const std::unique_ptr<hocket_file> closed{file};
    if (!closed) return static_cast<int>(HOCKET_OK);
    const int looked = look_at("hocket_file_close", file);
    return looked == HOCKET_OK ? closed->close() : looked;
  });
}
