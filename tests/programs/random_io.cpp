// Random collective accesses of a file, compared with a byte-by-byte model. It checks the content of the file, the
// memory of each rank, the statuses, and the file pointers.
//
//   random_io FILE SEED CASES [FIRST [library|behind]]   cases FIRST (0) to FIRST + CASES - 1 of a seed
//
// Each case has a file with its own hints, views of random datatypes, and writes and reads with random datatypes in
// memory, collective and independent. A difference is reported with the command that repeats it. With $RANDOM_IO_TELL
// the program reports every access. If two ranks would write the same bytes, only the first of them writes. MPI
// libraries differ in what they read beyond the end of a file: `library` leaves such cases out. The file is looked at
// before it is closed; `behind`: after that, because I/O servers may hold data until then.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "random_types.hpp"

namespace {

using namespace random_types;
using Bytes = std::vector<unsigned char>;

constexpr std::int64_t model_bytes = 512 << 10;  // of the file, from `base` on
constexpr unsigned limit_s = 120;                // of a case

int rank, ranks;
long long seed, current;  // the case
const char* path;
bool library, behind;
long long accesses;
char description[4096];

void require(bool holds, const char* what, long long a = 0, long long b = 0) {
  if (holds) return;
  std::fprintf(stderr, "random_io: rank %d of %d: %s (%lld, %lld)\n%s\nagain: random_io FILE %lld 1 %lld\n", rank,
               ranks, what, a, b, description, seed, current);
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);  // MPICH's returns
}

// Reports a case that does not end, or a called function that aborts.
extern "C" void told_by_signal(int number) {
  char text[sizeof description + 200];
  const int length =
      std::snprintf(text, sizeof text, "random_io: rank %d of %d: %s\n%s\nagain: random_io FILE %lld 1 %lld\n", rank,
                    ranks, number == SIGALRM ? "does not end" : "a call has failed hard", description, seed, current);
  if (write(2, text, static_cast<std::size_t>(length)) >= 0) _exit(1);
  _exit(2);
}

// ---- the model -----------------------------------------------------------------------------------------------------

struct Model {
  std::int64_t base = 0, size = 0;  // offset in the file; bytes from there to its end
  Bytes bytes = Bytes(model_bytes);
} model;

unsigned char content(std::int64_t what, std::int64_t byte) {
  const auto mixed = static_cast<std::uint64_t>(what * 2654435761 + byte) * 0x9E3779B97F4A7C15u;
  return static_cast<unsigned char>(mixed >> 53);
}

// A rank's view of the file. Places are those of the model.
struct View {
  std::int64_t displacement = 0;
  std::int64_t end = model_bytes;  // the view is not used from there on
  Type etype, filetype;

  std::int64_t place(std::int64_t byte) const {
    const std::int64_t tile = filetype.bytes();
    return displacement + byte / tile * filetype.extent() + filetype.at[static_cast<std::size_t>(byte % tile)];
  }
};

// ---- random views --------------------------------------------------------------------------------------------------

struct Base {
  Type type;
  int bytes = 1;
} base_type;

Type random_etype() {
  if (one_in(2)) return base_type.type;
  const Type etype = composed(draw(1, 4), base_type.type, 1, {true, base_type.bytes});
  return resized(etype, 0, etype.upper);
}

Type random_filetype(const Type& etype) {
  return composed(draw(1, one_in(4) ? 60 : 12), etype, static_cast<int>(draw(0, 3)), {true, etype.extent()});
}

// Each rank makes only the handles of its own types.
template <class Make>
auto for_rank(int r, Make make) {
  making = r == rank;
  auto made = make();
  making = true;
  return made;
}

// Random views: overlapping, or each in its own part of the file.
std::vector<View> any_views(bool apart) {
  std::vector<View> views(static_cast<std::size_t>(ranks));
  const std::int64_t part = model_bytes / ranks;
  for (int r = 0; r < ranks; ++r)
    views[static_cast<std::size_t>(r)] = for_rank(r, [&] {
      View view;
      view.etype = random_etype();
      view.filetype = random_filetype(view.etype);
      view.displacement = draw(0, 90) + (apart ? r * part : 0);
      view.end = apart ? (r + 1) * part : model_bytes;
      return view;
    });
  return views;
}

// Each rank has a different type; they follow each other in a tile of all ranks.
std::vector<View> striped_views() {
  std::vector<View> views = any_views(false);
  const std::int64_t displacement = draw(0, 90);
  std::int64_t unit = 1, stripe = 1;
  for (const View& view : views) {
    unit = std::lcm(unit, view.etype.extent());
    stripe = std::max(stripe, view.filetype.upper);
  }
  if (unit > 5000) return any_views(true);
  stripe = (stripe + unit - 1) / unit * unit;
  for (int r = 0; r < ranks; ++r) {
    View& view = views[static_cast<std::size_t>(r)];
    view.displacement = displacement + r * stripe;
    view.filetype = for_rank(r, [&] { return resized(view.filetype, 0, stripe * ranks); });
  }
  return views;
}

std::vector<View> without_data(std::vector<View> views, std::size_t r, const View& like) {
  views[r].etype = views[r].filetype = like.etype;
  views[r].displacement = views[r].end = 0;
  return views;
}

// Draws the common fields of the views of an array.
View random_frame() {
  View frame;
  frame.etype = random_etype();
  frame.displacement = draw(0, 90);
  return frame;
}

// Views of an array that is distributed over all ranks, by blocks or cyclically.
std::vector<View> darray_views() {
  std::vector<Dimension> dimensions;
  int left = ranks;
  for (std::int64_t d = draw(1, 3); d > 0; --d) {
    Dimension one;
    one.processes = d == 1 ? left : static_cast<int>(divisor_of(left));
    left /= one.processes;
    one.size = static_cast<int>(draw(one.processes, 3 * one.processes + 5));
    one.cyclic = one_in(2);
    if (one.cyclic && one_in(2)) one.block = static_cast<int>(draw(1, 3));
    dimensions.push_back(one);
  }
  const bool fortran = one_in(2);
  const View like = random_frame();
  std::vector<View> views(static_cast<std::size_t>(ranks), like);
  for (int r = 0; r < ranks; ++r) {
    int process = r;
    bool has_part = true;
    for (std::size_t d = dimensions.size(); d-- > 0; process /= dimensions[d].processes) {
      bool any = false;
      for (int i = 0; i < dimensions[d].size; ++i)
        any = any || dimensions[d].owned_by(process % dimensions[d].processes, i);
      has_part = has_part && any;
    }
    const auto at = static_cast<std::size_t>(r);
    if (has_part)
      views[at].filetype = for_rank(r, [&] { return darray(dimensions, r, fortran, like.etype); });
    else
      views = without_data(std::move(views), at, like);
  }
  return views;
}

// An array divided into blocks of different sizes, one for each rank.
std::vector<View> block_views() {
  std::vector<std::vector<int>> cuts;  // in each dimension, from 0 to the size
  int left = ranks;
  for (std::int64_t d = draw(1, 3); d > 0; --d) {
    const int parts = d == 1 ? left : static_cast<int>(divisor_of(left));
    left /= parts;
    std::vector<int> cut{0};
    for (int i = 0; i < parts; ++i) cut.push_back(cut.back() + static_cast<int>(draw(1, 6)));
    cuts.push_back(cut);
  }
  const bool fortran = one_in(2);
  const View like = random_frame();
  std::vector<View> views(static_cast<std::size_t>(ranks), like);
  for (int r = 0; r < ranks; ++r) {
    std::vector<int> sizes, parts, starts;
    int block = r;
    for (const std::vector<int>& cut : cuts) {
      const auto which = static_cast<std::size_t>(block) % (cut.size() - 1);
      block /= static_cast<int>(cut.size() - 1);
      sizes.push_back(cut.back()), starts.push_back(cut[which]), parts.push_back(cut[which + 1] - cut[which]);
    }
    views[static_cast<std::size_t>(r)].filetype =
        for_rank(r, [&] { return subarray(sizes, parts, starts, fortran, like.etype); });
  }
  return views;
}

std::vector<View> random_views() {
  switch (draw(0, 5)) {
    case 0: return any_views(false);
    case 1: return any_views(true);
    case 2: return darray_views();
    case 3: return block_views();
    default: return striped_views();
  }
}

// ---- one access ----------------------------------------------------------------------------------------------------

void check_bounds(const Type& type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type.handle(), &lower, &extent);
  require(lower == type.lower && extent == type.extent(), "the model has another type", lower, extent);
}

// One rank's part in a collective access.
struct Part {
  std::int64_t offset = 0, etypes = 0;
  std::int64_t moved = 0;  // bytes; those beyond the end of the file are not read
  Type memory;
  std::int64_t count = 0;
};

// Returns at most `etypes`, halved until the view stays in its usable range.
std::int64_t fitting(const View& view, std::int64_t offset, std::int64_t etypes) {
  const std::int64_t bytes = view.etype.bytes();
  while (etypes > 0 && view.place((offset + etypes) * bytes - 1) >= view.end) etypes /= 2;
  return etypes;
}

Part random_part(const View& view, std::int64_t offset) {
  Part part;
  part.offset = offset;
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{1} << draw(2, 15)) / view.etype.bytes());
  part.etypes = one_in(6) ? 0 : draw(1, most);
  if (part.etypes > 12 && one_in(2)) part.etypes -= part.etypes % 12;  // numbers with many divisors
  part.etypes = fitting(view, offset, part.etypes);
  return part;
}

void random_memory(Part& part, const View& view, bool plain) {
  const std::int64_t elements = part.etypes * view.etype.bytes() / base_type.bytes;
  if (elements == 0 || plain) {
    part.memory = base_type.type;
    part.count = elements;
    return;
  }
  part.count = one_in(3) ? 1 : divisor_of(elements);
  part.memory = composed(elements / part.count, base_type.type, static_cast<int>(draw(0, 3)), {});
}

std::int64_t memory_place(const Part& part, std::int64_t byte) {
  const std::int64_t tile = part.memory.bytes();
  return byte / tile * part.memory.extent() + part.memory.at[static_cast<std::size_t>(byte % tile)];
}

struct How {
  bool writes, by_pointer, independent, large, absolute;
};

int call(MPI_File file, const How& how, MPI_Offset offset, void* data, std::int64_t count, MPI_Datatype type,
         MPI_Status* status) {
  const int n = static_cast<int>(count);
  if (how.independent && how.by_pointer)
    return how.writes ? MPI_File_write(file, data, n, type, status) : MPI_File_read(file, data, n, type, status);
  if (how.independent)
    return how.writes ? MPI_File_write_at(file, offset, data, n, type, status)
                      : MPI_File_read_at(file, offset, data, n, type, status);
#if MPI_VERSION >= 4
  if (how.large && how.by_pointer)
    return how.writes ? MPI_File_write_all_c(file, data, count, type, status)
                      : MPI_File_read_all_c(file, data, count, type, status);
  if (how.large)
    return how.writes ? MPI_File_write_at_all_c(file, offset, data, count, type, status)
                      : MPI_File_read_at_all_c(file, offset, data, count, type, status);
#endif
  if (how.by_pointer)
    return how.writes ? MPI_File_write_all(file, data, n, type, status)
                      : MPI_File_read_all(file, data, n, type, status);
  return how.writes ? MPI_File_write_at_all(file, offset, data, n, type, status)
                    : MPI_File_read_at_all(file, offset, data, n, type, status);
}

void describe(const View& view, const Part& part, const How& how) {
  std::snprintf(description, sizeof description,
                "%s%s%s%s, offset %lld, %lld etypes of %s\nview: at %lld: %.1500s\nmemory: %lld of %.1500s",
                how.independent ? "independent " : "", how.large ? "large " : "", how.writes ? "write" : "read",
                how.by_pointer ? " by pointer" : "", static_cast<long long>(part.offset),
                static_cast<long long>(part.etypes), view.etype.words.c_str(),
                static_cast<long long>(model.base + view.displacement), view.filetype.words.c_str(),
                static_cast<long long>(part.count), part.memory.words.c_str());
  if (std::getenv("RANDOM_IO_TELL")) std::fprintf(stderr, "rank %d: %s\n", rank, description);
}

// Returns the count that MPI_Get_elements reports.
int elements_of(std::int64_t bytes) {
  return bytes % base_type.bytes == 0 ? static_cast<int>(bytes / base_type.bytes) : MPI_UNDEFINED;
}

// Carries out this rank's part. `what` determines the content that it writes.
void carry_out(MPI_File file, const View& view, const Part& part, const How& how, std::int64_t what) {
  describe(view, part, how);
  check_bounds(part.memory);
  const std::int64_t bytes = part.etypes * view.etype.bytes(), first = part.offset * view.etype.bytes();
  std::int64_t low = 0, high = 0;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::int64_t at = memory_place(part, i);
    low = std::min(low, at), high = std::max(high, at + 1);
  }
  constexpr std::int64_t margin = 64;
  Bytes memory(static_cast<std::size_t>(high - low + 2 * margin), 0xEE);
  Bytes expected = memory;
  unsigned char* const origin = memory.data() + margin - low;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto at = static_cast<std::size_t>(memory_place(part, i) + margin - low);
    if (how.writes) memory[at] = content(what, i);
    if (how.writes || i < part.moved)
      expected[at] = how.writes ? memory[at] : model.bytes[static_cast<std::size_t>(view.place(first + i))];
  }
  MPI_Datatype type = part.memory.handle();
  if (how.absolute) {
    const int one = static_cast<int>(part.count);
    MPI_Aint address;
    MPI_Get_address(origin, &address);
    MPI_Type_create_hindexed(1, &one, &address, part.memory.handle(), &type);
  }
  if (how.absolute || part.count > 0) MPI_Type_commit(&type);
  MPI_Status status;
  const int code =
      call(file, how, part.offset, how.absolute ? MPI_BOTTOM : origin, how.absolute ? 1 : part.count, type, &status);
  require(code == MPI_SUCCESS, "the access failed", code);
  int elements = -1;
  MPI_Get_elements(&status, type, &elements);
  require(elements == elements_of(part.moved), "the status has another number of elements", elements,
          elements_of(part.moved));
  if (how.absolute) MPI_Type_free(&type);
  for (std::size_t i = 0; i < memory.size(); ++i)
    require(memory[i] == expected[i], "another byte in memory", static_cast<long long>(i) - margin + low, memory[i]);
}

// Applies the rank's write to the model, or returns false if another rank writes one of the bytes.
bool claim(const View& view, const Part& part, std::vector<bool>& taken, std::int64_t what) {
  const std::int64_t bytes = part.etypes * view.etype.bytes(), first = part.offset * view.etype.bytes();
  for (std::int64_t i = 0; i < bytes; ++i)
    if (taken[static_cast<std::size_t>(view.place(first + i))]) return false;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto at = static_cast<std::size_t>(view.place(first + i));
    taken[at] = true;
    model.bytes[at] = content(what, i);
    model.size = std::max(model.size, static_cast<std::int64_t>(at) + 1);
  }
  return true;
}

void access_all(MPI_File file, const std::vector<View>& views, Places& pointers, bool may_mix) {
  How how{};
  how.writes = !one_in(3), how.by_pointer = one_in(2), how.large = one_in(3);
  how.independent = may_mix && one_in(6);
  const std::int64_t what = draw(0, 1 << 30);
  std::vector<bool> taken(how.writes ? model_bytes : 0);
  Part own;
  for (std::size_t r = 0; r < views.size(); ++r) {
    Part part = random_part(views[r], how.by_pointer ? pointers[r] : draw(0, 40));
    if (how.writes && !claim(views[r], part, taken, what + static_cast<std::int64_t>(r))) part.etypes = 0;
    for_rank(static_cast<int>(r), [&] {
      random_memory(part, views[r], may_mix || library);
      return 0;
    });
    const bool absolute = part.etypes > 0 && !may_mix && !library && one_in(8);
    const std::int64_t bytes = part.etypes * views[r].etype.bytes(), first = part.offset * views[r].etype.bytes();
    part.moved = bytes;
    while (!how.writes && part.moved > 0 && views[r].place(first + part.moved - 1) >= model.size) --part.moved;
    if (how.by_pointer) pointers[r] += part.etypes;
    if (static_cast<int>(r) != rank) continue;
    own = part;
    how.absolute = absolute;
  }
  const auto me = static_cast<std::size_t>(rank);
  carry_out(file, views[me], own, how, what + rank);
  MPI_Offset position = 0;
  MPI_File_get_position(file, &position);
  require(position == pointers[me], "the file pointer is elsewhere", position, pointers[me]);
  ++accesses;
}

// ---- one case ------------------------------------------------------------------------------------------------------

void fill_file() {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const auto bytes = static_cast<std::size_t>(model.size);
  require(fd >= 0 && pwrite(fd, model.bytes.data(), bytes, model.base) == model.size && close(fd) == 0,
          "the file cannot be filled");
}

void check_file() {
  Bytes found(static_cast<std::size_t>(model.size));
  struct stat file {};
  const int fd = open(path, O_RDONLY);
  require(fd >= 0 && fstat(fd, &file) == 0, "the file cannot be opened");
  require(file.st_size == (model.size > 0 ? model.base + model.size : 0), "the file has another size", file.st_size,
          model.base + model.size);
  require(pread(fd, found.data(), found.size(), model.base) == model.size, "the file cannot be read");
  for (std::size_t i = 0; i < found.size(); ++i)
    require(found[i] == model.bytes[i], "another byte in the file", model.base + static_cast<long long>(i), found[i]);
  close(fd);
}

MPI_Info random_hints() {
  MPI_Info info;
  MPI_Info_create(&info);
  const auto set = [&](const char* key, const std::string& value) {
    MPI_Info_set(info, key, value.c_str());
    if (rank == 0 && std::getenv("RANDOM_IO_TELL")) std::fprintf(stderr, "hint %s = %s\n", key, value.c_str());
  };
  const std::array<const char*, 4> methods = {"view", "list", "auto", ""};
  const std::string method = methods[static_cast<std::size_t>(draw(0, 3))];
  if (!method.empty()) set("hocket_collective", method);
  if (!one_in(4)) set(one_in(2) ? "hocket_aggregators" : "cb_nodes", std::to_string(draw(1, ranks)));
  if (!one_in(4)) set("hocket_buffer_size", std::to_string(std::int64_t{1} << draw(12, 17)));
  if (one_in(2)) set("hocket_shared_memory", one_in(2) ? "off" : "on");
  if (one_in(3)) set("hocket_servers", std::to_string(draw(0, 3)));
  return info;
}

void random_base() {
  const std::array<std::pair<MPI_Datatype, const char*>, 5> types = {
      {{MPI_BYTE, "byte"}, {MPI_SHORT, "short"}, {MPI_INT, "int"}, {MPI_DOUBLE, "double"}, {MPI_CHAR, "char"}}};
  const auto& [handle, words] = types[static_cast<std::size_t>(draw(0, 4))];
  MPI_Type_size(handle, &base_type.bytes);
  base_type.type = named(handle, base_type.bytes, words);
}

void round(MPI_File file, bool may_mix) {
  const std::vector<View> views = random_views();
  const View& own = views[static_cast<std::size_t>(rank)];
  MPI_Datatype etype = own.etype.handle(), filetype = own.filetype.handle();
  check_bounds(own.filetype);
  MPI_Type_commit(&etype), MPI_Type_commit(&filetype);
  std::snprintf(description, sizeof description, "view: %.3000s", own.filetype.words.c_str());
  const int code = MPI_File_set_view(file, model.base + own.displacement, etype, filetype, "native", MPI_INFO_NULL);
  require(code == MPI_SUCCESS, "MPI_File_set_view", code);
  if (one_in(4)) {
    MPI_Info info = random_hints();
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
  }
  const bool atomic = may_mix && one_in(8);
  if (atomic) MPI_File_set_atomicity(file, 1);
  Places pointers(views.size());
  for (std::int64_t left = draw(1, 4); left > 0; --left) {
    access_all(file, views, pointers, may_mix);
    if (one_in(5)) MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (atomic) MPI_File_set_atomicity(file, 0);
}

void run_case() {
  std::seed_seq numbers{seed, current};
  bits.seed(numbers);
  random_base();
  const bool filled = library || !one_in(3), may_mix = filled && one_in(3);
  constexpr std::int64_t stripe_bytes = 1 << 20;  // I/O servers have the file's stripes in turn
  model.base = one_in(4) ? 5000000000 + draw(0, 99) : draw(0, 1) * draw(0, 5000);
  if (one_in(2)) model.base = draw(1, 4) * stripe_bytes - draw(1, model_bytes / 2);
  model.size = filled ? model_bytes : 0;
  for (std::size_t i = 0; i < model.bytes.size(); ++i)
    model.bytes[i] = filled ? content(current, static_cast<std::int64_t>(i)) : 0;
  if (rank == 0) fill_file();
  MPI_Info info = random_hints();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file;
  const int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file);
  require(code == MPI_SUCCESS, "MPI_File_open", code);
  MPI_Info_free(&info);
  for (std::int64_t rounds = draw(1, 3); rounds > 0; --rounds) round(file, may_mix);
  if (rank == 0 && !behind) check_file();
  require(MPI_File_close(&file) == MPI_SUCCESS, "MPI_File_close");
  if (rank == 0 && behind) check_file();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc > 3, "give FILE SEED CASES [FIRST [library|behind]]");
  path = argv[1];
  seed = std::atoll(argv[2]);
  const long long cases = std::atoll(argv[3]), first = argc > 4 ? std::atoll(argv[4]) : 0;
  library = argc > 5 && std::strcmp(argv[5], "library") == 0;
  behind = argc > 5 && std::strcmp(argv[5], "behind") == 0;
  for (const int number : {SIGALRM, SIGABRT}) signal(number, told_by_signal);
  for (current = first; current < first + cases; ++current) {
    alarm(limit_s);
    run_case();
  }
  alarm(0);
  if (rank == 0) std::printf("%lld cases, %lld accesses\n", cases, accesses);
  base_type.type = {};
  MPI_Finalize();
  return 0;
}
