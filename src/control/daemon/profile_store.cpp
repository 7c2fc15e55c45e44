#include "daemon/profile_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "bus/local_socket.hpp"

namespace hocket::daemon {
namespace {

constexpr const char* schema_version = "1";
constexpr int longest_wait_ms = 200;  // wait for another writer; short, as the daemon has applications to answer
// Bounds of the cache, and of a plausible time in seconds.
constexpr std::size_t most_fingerprints = 1024;
constexpr double longest_s = 1e9;

using Database = std::unique_ptr<sqlite3, decltype([](sqlite3* db) { sqlite3_close(db); })>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype([](sqlite3_stmt* s) { sqlite3_finalize(s); })>;

Result<Statement> prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* made = nullptr;
  const int code = sqlite3_prepare_v2(db, sql, -1, &made, nullptr);
  Statement statement{made};
  if (code != SQLITE_OK) return Error{sqlite3_errmsg(db)};
  return statement;
}

void bind_text(const Statement& statement, int place, const std::string& text) {
  sqlite3_bind_text(statement.get(), place, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

// Opens the file. The busy timeout bounds how long a lock of another process can block the daemon.
Result<Database> open_database(const std::string& path, int mode = SQLITE_OPEN_READONLY) {
  sqlite3* made = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &made, mode, nullptr);
  Database db{made};
  if (code != SQLITE_OK) return Error{made == nullptr ? "out of memory" : sqlite3_errmsg(made)};
  sqlite3_busy_timeout(made, longest_wait_ms);
  return db;
}

// Refuses a store of another version: guessing its columns could give wrong times.
Status check_schema(sqlite3* db) {
  auto asked = prepare(db, "SELECT value FROM meta WHERE key = 'schema'");
  if (!asked) return asked.error();
  if (sqlite3_step(asked.value().get()) != SQLITE_ROW) return Error{"its table 'meta' names no 'schema'"};
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(asked.value().get(), 0));
  if (text != nullptr && std::string_view{text} == schema_version) return success();
  return Error{fmt::format("its schema is '{}', and this hocketd reads '{}'", text ? text : "", schema_version)};
}

// True for a finite time in seconds within the bounds; the file could contain infinities.
bool is_time(double s, bool may_be_zero) {
  return std::isfinite(s) && s <= longest_s && (may_be_zero ? s >= 0 : s > 0);
}

// Returns what is wrong with a point, or "". The file is the user's, so every value is checked.
std::string what_is_wrong(const event::Profile& p) {
  if (p.processes < 1) return fmt::format("processes is {}: it must be 1 or more", p.processes);
  if (!is_time(p.iteration_s, false)) return fmt::format("iteration_s is {}: it must be above 0", p.iteration_s);
  if (!is_time(p.io_s, true)) return fmt::format("io_s is {}: it must be 0 or more", p.io_s);
  if (!is_time(p.iteration_spread_s, true) || !is_time(p.io_spread_s, true)) {
    return fmt::format("a spread is {} or {}: it must be 0 or more", p.iteration_spread_s, p.io_spread_s);
  }
  if (p.samples < 1) return fmt::format("samples is {}: it must be 1 or more", p.samples);
  if (!std::isfinite(p.flop_per_iteration) || p.flop_per_iteration < 0) {
    return fmt::format("flop_per_iteration is {}: it must be 0 or more", p.flop_per_iteration);
  }
  if (p.comm_s != -1 && !(is_time(p.comm_s, true) && p.comm_s <= p.iteration_s)) {
    return fmt::format("comm_s is {}: it must be a part of iteration_s, or -1 if it is not known", p.comm_s);
  }
  return {};
}

// Converts a row; the columns are those of read_points, in the same order.
event::Profile point_of(sqlite3_stmt* row, AppId app) {
  event::Profile point;
  point.app = app;
  point.processes = sqlite3_column_int64(row, 0);
  point.iteration_s = sqlite3_column_double(row, 1);
  point.iteration_spread_s = sqlite3_column_double(row, 2);
  point.io_s = sqlite3_column_double(row, 3);
  point.io_spread_s = sqlite3_column_double(row, 4);
  point.samples = sqlite3_column_int64(row, 5);
  point.flop_per_iteration = sqlite3_column_double(row, 6);
  point.comm_s = sqlite3_column_double(row, 7);
  return point;
}

// True if the store has the column of communication times, which stores of older versions lack.
bool has_comm(sqlite3* db) { return prepare(db, "SELECT comm_s FROM point LIMIT 0").ok(); }

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Reads the points of one program. The row limit bounds the memory that a strange file can take.
Result<std::vector<event::Profile>> read_points(sqlite3* db, const std::string& program, const std::string& sha256,
                                                AppId app) {
  if (const Status known = check_schema(db); !known) return known.error();
  const std::string columns =
      "processes, iteration_s, iteration_spread_s, io_s, io_spread_s, samples, "
      "flop_per_iteration, " +
      std::string{has_comm(db) ? "comm_s" : "-1"};
  const std::string sql = "SELECT " + columns +
                          " FROM point WHERE program = ?1 AND fingerprint = ?2 ORDER BY processes "
                          "LIMIT 256";
  auto asked = prepare(db, sql.c_str());
  if (!asked) return asked.error();
  bind_text(asked.value(), 1, program);
  bind_text(asked.value(), 2, sha256);
  std::vector<event::Profile> points;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(asked.value().get())) == SQLITE_ROW) {
    points.push_back(point_of(asked.value().get(), app));
    if (const std::string wrong = what_is_wrong(points.back()); !wrong.empty()) {
      return Error{fmt::format("table 'point', program '{}', {} processes: {}; remove it with hocket profile rm {}",
                               program, points.back().processes, wrong, program)};
    }
  }
  if (code != SQLITE_DONE) return Error{sqlite3_errmsg(db)};
  return points;
}

Status execute(sqlite3* db, const char* sql) {
  return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? success() : Status{Error{sqlite3_errmsg(db)}};
}

// Inserts or replaces one row. `arguments` stays empty, since hocketd does not know them.
Status write_point(sqlite3* db, const std::string& program, const std::string& sha256, const std::string& mpi,
                   const event::Profile& point, std::int64_t measured_unix_s) {
  auto row = prepare(db,
                     "INSERT OR REPLACE INTO point(program, fingerprint, mpi, processes, iteration_s, "
                     "iteration_spread_s, io_s, io_spread_s, samples, flop_per_iteration, measured_unix_s, arguments, "
                     "comm_s) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '', ?12)");
  if (!row) return row.error();
  bind_text(row.value(), 1, program);
  bind_text(row.value(), 2, sha256);
  bind_text(row.value(), 3, mpi);
  sqlite3_stmt* into = row.value().get();
  sqlite3_bind_int64(into, 4, point.processes);
  sqlite3_bind_double(into, 5, point.iteration_s);
  sqlite3_bind_double(into, 6, point.iteration_spread_s);
  sqlite3_bind_double(into, 7, point.io_s);
  sqlite3_bind_double(into, 8, point.io_spread_s);
  sqlite3_bind_int64(into, 9, point.samples);
  sqlite3_bind_double(into, 10, point.flop_per_iteration);
  sqlite3_bind_double(into, 11, static_cast<double>(measured_unix_s));
  sqlite3_bind_double(into, 12, point.comm_s);
  return sqlite3_step(into) == SQLITE_DONE ? success() : Status{Error{sqlite3_errmsg(db)}};
}

// The schema is that of python/hocket/profile/store.py. `synchronous = OFF` skips fsync: a crash of the machine may
// lose measurements, which is cheaper than a blocked daemon.
constexpr const char* create =
    "PRAGMA synchronous = OFF;"
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE IF NOT EXISTS point("
    "program TEXT, fingerprint TEXT, mpi TEXT, processes INTEGER, iteration_s REAL, iteration_spread_s REAL, io_s "
    "REAL, "
    "io_spread_s REAL, samples INTEGER, flop_per_iteration REAL, measured_unix_s REAL, arguments TEXT, "
    "comm_s REAL DEFAULT -1, PRIMARY KEY(program, fingerprint, processes));"
    "INSERT OR IGNORE INTO meta VALUES('schema', '1');";

}  // namespace

std::string profile_store_path(const std::string& setting) {
  if (setting == "none") return {};
  if (!setting.empty()) return setting;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string{value == nullptr ? "" : value};
  };
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/hocket/profiles.db";
  const std::string home = variable("HOME");
  return home.empty() ? home : home + "/.local/share/hocket/profiles.db";
}

Result<std::string> fingerprint_of(const std::string& path) {
  // O_NONBLOCK keeps a FIFO at this path from blocking the daemon.
  const bus::Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return Error{"cannot read " + path + ": " + bus::error_text(errno)};
  const std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* c) { EVP_MD_CTX_free(c); })> hash{EVP_MD_CTX_new()};
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) return Error{"cannot compute a SHA-256"};
  std::array<unsigned char, 65536> part{};
  ssize_t n = 0;
  while ((n = read(file.get(), part.data(), part.size())) > 0) {
    EVP_DigestUpdate(hash.get(), part.data(), static_cast<std::size_t>(n));
  }
  if (n < 0) return Error{"cannot read " + path + ": " + bus::error_text(errno)};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(hash.get(), digest.data(), &length);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

// Returns the cached fingerprint if size and modification time of the executable are unchanged.
Result<std::string> ProfileStore::fingerprint(const std::string& executable) {
  struct stat file {};
  if (stat(executable.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return Error{executable + " is no file"};
  const std::int64_t modified_ns = file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec;
  // A full cache is cleared; fingerprints are computed again when needed.
  if (fingerprints_.size() >= most_fingerprints) fingerprints_.clear();
  Fingerprint& known = fingerprints_[executable];
  if (known.size == file.st_size && known.modified_ns == modified_ns && !known.sha256.empty()) return known.sha256;
  auto sha256 = fingerprint_of(executable);
  if (sha256) known = {file.st_size, modified_ns, sha256.value()};
  return sha256;
}

Result<std::vector<event::Profile>> ProfileStore::find(const std::string& executable, AppId app,
                                                       const std::string& told) {
  std::vector<event::Profile> none;
  if (path_.empty() || executable.empty() || access(path_.c_str(), F_OK) != 0) return none;
  const auto in_store = [this](const Error& error) {
    return Error{fmt::format("profiles: {}: {}; continuing without profiles", path_, error.text)};
  };
  auto db = open_database(path_);
  if (!db) return in_store(db.error());
  const auto sha256 = told.empty() ? fingerprint(executable) : Result<std::string>{told};
  if (!sha256) return none;  // the executable may have been replaced while the program runs
  auto points = read_points(db.value().get(), base_name(executable), sha256.value(), app);
  if (!points) return in_store(points.error());
  return points;
}

Status ProfileStore::put(const std::string& executable, const std::string& mpi,
                         const std::vector<event::Profile>& points, std::int64_t measured_unix_s,
                         const std::string& told) {
  if (path_.empty() || points.empty()) return success();
  const auto in_store = [this](const std::string& why) {
    return Error{fmt::format("profiles: {}: {}; the measurements are lost", path_, why)};
  };
  const auto sha256 = told.empty() ? fingerprint(executable) : Result<std::string>{told};
  if (!sha256) return success();  // the executable may have been replaced while the program ran
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path{path_}.parent_path(), failed);
  auto db = open_database(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!db) return in_store(db.error().text);
  sqlite3* into = db.value().get();
  if (const Status made = execute(into, create); !made) return in_store(made.error().text);
  if (const Status known = check_schema(into); !known) return in_store(known.error().text);
  if (!has_comm(into)) {
    const Status added = execute(into, "ALTER TABLE point ADD COLUMN comm_s REAL DEFAULT -1");
    if (!added) return in_store(added.error().text);
  }
  for (const event::Profile& point : points) {
    const Status written = write_point(into, base_name(executable), sha256.value(), mpi, point, measured_unix_s);
    if (!written) return in_store(written.error().text);  // closing the database rolls back what was begun
  }
  const Status done = execute(into, "COMMIT");
  return done ? done : Status{in_store(done.error().text)};
}

}  // namespace hocket::daemon
