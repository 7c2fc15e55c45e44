// The functions of include/hocket/file_mpi.h: they read MPI datatypes, and let the C API of put and get do the rest.
// They use no connection of libhocket's own, and no communicator.
#include "hocket/file_mpi.h"

#include <string>
#include <utility>

#include "api/file.hpp"
#include "api/status.hpp"
#include "collective/datatypes.hpp"
#include "mpi_shim/depth.hpp"
#include "process/hot.hpp"

namespace {

using hocket::Error;
using hocket::Result;
using hocket::api::FileCall;
using hocket::api::Shape;
namespace layout = hocket::layout;

// An access as its caller describes it.
struct TypedAccess {
  std::int64_t offset;
  MPI_Datatype filetype;
  std::int64_t count;
  MPI_Datatype type;
};

// Names the parameter in an error about its datatype.
Error wrong(const char* name, const Error& error) { return Error{"'" + std::string{name} + "' is " + error.text}; }

Result<Shape> shape_of(const TypedAccess& access) {
  if (access.offset < 0 || access.offset >= layout::limit)
    return Error{"'offset' is " + std::to_string(access.offset) + "; it must be at least 0 and below 2^62"};
  if (access.count < 0) return Error{"'count' is " + std::to_string(access.count) + "; it must be at least 0"};
  const Result<layout::Layout> filetype = hocket::runtime::collective::decode(access.filetype);
  if (!filetype) return wrong("filetype", filetype.error());
  const Result<layout::Layout> type = hocket::runtime::collective::decode(access.type);
  if (!type) return wrong("type", type.error());
  Result<layout::FileView> view = layout::FileView::make(access.offset, filetype.value());
  if (!view) return wrong("filetype", view.error());
  Result<layout::Layout> memory = layout::contiguous(access.count, type.value());
  if (!memory) return wrong("count", Error{std::to_string(access.count) + ": " + memory.error().text});
  const std::int64_t bytes = memory.value().size();
  if (bytes > view.value().bytes())
    return filetype.value().size() == 0 ? Error{"'filetype' has no data, but 'count' items of 'type' have some"}
                                        : Error{"the data would end beyond the longest file, 2^62 bytes"};
  return Shape{std::move(view).value(), std::move(memory).value()};
}

int perform(const FileCall& call, const TypedAccess& access, void* data, bool writes, std::int64_t* got) {
  return hocket::api::guarded([&] {
    if (!hocket::runtime::hot.is_active())
      return hocket::api::fail(HOCKET_ERROR_ORDER,
                               std::string{call.function} + " was called before MPI_Init or after MPI_Finalize");
    const Result<Shape> shape = [&] {
      const hocket::runtime::Inside inside;  // a signal handler that interrupts MPI passes by libhocket
      return shape_of(access);
    }();
    return hocket::api::perform(call, shape, data, writes, got);
  });
}

}  // namespace

// The casts let one function serve both directions; a put only reads the memory.

int hocket_file_put_typed(hocket_file* file, int64_t offset, MPI_Datatype filetype, const void* data, int64_t count,
                          MPI_Datatype type) {
  return perform({"hocket_file_put_typed", file}, {offset, filetype, count, type}, const_cast<void*>(data), true,
                 nullptr);
}

int hocket_file_get_typed(hocket_file* file, int64_t offset, MPI_Datatype filetype, void* data, int64_t count,
                          MPI_Datatype type, int64_t* got) {
  return perform({"hocket_file_get_typed", file}, {offset, filetype, count, type}, data, false, got);
}

int hocket_file_put_typed_all(hocket_file* file, uint64_t operation, int64_t offset, MPI_Datatype filetype,
                              const void* data, int64_t count, MPI_Datatype type) {
  return perform({"hocket_file_put_typed_all", file, true, operation}, {offset, filetype, count, type},
                 const_cast<void*>(data), true, nullptr);
}

int hocket_file_get_typed_all(hocket_file* file, uint64_t operation, int64_t offset, MPI_Datatype filetype, void* data,
                              int64_t count, MPI_Datatype type, int64_t* got) {
  return perform({"hocket_file_get_typed_all", file, true, operation}, {offset, filetype, count, type}, data, false,
                 got);
}
