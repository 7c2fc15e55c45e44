// Names and attributes of the mount: each operation is one system call on the directory below it.
#define _GNU_SOURCE
#include "forwarding/fuse/operations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "forwarding/fuse/handles.h"

// The kernel asks each time, because others may change the files.
static const double valid_s = 0;

static void reply(fuse_req_t request, bool is_good) { fuse_reply_err(request, is_good ? 0 : errno); }

// Returns a descriptor of the file, in a thread that has the caller's rights; NULL if one of both fails.
static struct shared_fd* reach(fuse_req_t request, fuse_ino_t number) {
  return act_for(request) ? node_reach(node_of(number)) : NULL;
}

// Finds the file of that name, and describes it for the kernel.
static bool find_entry(struct node* parent, int directory, const char* name, struct fuse_entry_param* entry) {
  *entry = (struct fuse_entry_param){.attr_timeout = valid_s, .entry_timeout = valid_s};
  struct node* const node =
      node_found(parent, name, openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), &entry->attr);
  entry->ino = node == nodes_root() ? FUSE_ROOT_ID : (uintptr_t)node;
  return node != NULL;
}

// Answers with the file of that name, if it `is_made`.
static void reply_entry(fuse_req_t request, struct shared_fd* directory, fuse_ino_t parent, const char* name,
                        bool is_made) {
  struct fuse_entry_param entry;
  if (!is_made || !find_entry(node_of(parent), directory->fd, name, &entry))
    fuse_reply_err(request, errno);
  else if (fuse_reply_entry(request, &entry) == -ENOENT)
    node_forgotten(node_of(entry.ino), 1);
  shared_fd_leave(directory);
}

static void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  struct shared_fd* const directory = reach(request, parent);
  reply_entry(request, directory, parent, name, directory != NULL);
}

static void make_directory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  struct shared_fd* const directory = reach(request, parent);
  reply_entry(request, directory, parent, name, directory && mkdirat(directory->fd, name, mode) == 0);
}

static void make_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  struct shared_fd* const directory = reach(request, parent);
  reply_entry(request, directory, parent, name, directory && mknodat(directory->fd, name, mode, device) == 0);
}

static void make_link(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  struct shared_fd* const directory = reach(request, parent);
  reply_entry(request, directory, parent, name, directory && symlinkat(target, directory->fd, name) == 0);
}

static void add_name(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
  struct shared_fd* const directory = reach(request, parent);
  struct shared_fd* const file = directory ? node_reach(node_of(number)) : NULL;
  bool is_made = false;
  if (file) {
    char path[fd_path_bytes];
    fd_path(file->fd, path);
    is_made = linkat(AT_FDCWD, path, directory->fd, name, AT_SYMLINK_FOLLOW) == 0;
  }
  const int error = errno;
  shared_fd_leave(file);
  errno = error;
  reply_entry(request, directory, parent, name, is_made);
}

static void create_file(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                        struct fuse_file_info* info) {
  struct shared_fd* const directory = reach(request, parent);
  const int flags = (info->flags | O_CREAT | O_CLOEXEC) & ~O_NOFOLLOW;
  const int fd = directory ? openat(directory->fd, name, flags, mode) : -1;
  struct fuse_entry_param entry = {.attr_timeout = valid_s, .entry_timeout = valid_s};
  struct node* node = NULL;
  if (fd >= 0) node = node_found(node_of(parent), name, reopen(fd, O_PATH), &entry.attr);
  if (fd >= 0 && !node) close(fd);
  if (node && !handle_begin(node, fd, info)) node_forgotten(node, 1), node = NULL;
  entry.ino = (uintptr_t)node;
  if (!node) {
    fuse_reply_err(request, errno);
  } else if (fuse_reply_create(request, &entry, info) == -ENOENT) {
    handle_end(handle_of(info));
    node_forgotten(node, 1);
  }
  shared_fd_leave(directory);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char* name) {
  struct shared_fd* const directory = reach(request, parent);
  reply(request, directory && unlinkat(directory->fd, name, 0) == 0);
  shared_fd_leave(directory);
}

static void remove_directory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  struct shared_fd* const directory = reach(request, parent);
  reply(request, directory && unlinkat(directory->fd, name, AT_REMOVEDIR) == 0);
  shared_fd_leave(directory);
}

static void rename_file(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to, const char* new_name,
                        unsigned flags) {
  struct shared_fd* const directory = reach(request, from);
  struct shared_fd* const other = directory ? node_reach(node_of(to)) : NULL;
  const bool is_done = other && renameat2(directory->fd, name, other->fd, new_name, flags) == 0;
  if (is_done) node_renamed(node_of(to), new_name);
  if (is_done && (flags & RENAME_EXCHANGE)) node_renamed(node_of(from), name);
  reply(request, is_done);
  shared_fd_leave(directory);
  shared_fd_leave(other);
}

static void forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups) {
  if (number != FUSE_ROOT_ID) node_forgotten(node_of(number), lookups);
  fuse_reply_none(request);
}

static void forget_many(fuse_req_t request, size_t count, struct fuse_forget_data* all) {
  for (size_t i = 0; i < count; ++i)
    if (all[i].ino != FUSE_ROOT_ID) node_forgotten(node_of(all[i].ino), all[i].nlookup);
  fuse_reply_none(request);
}

// ---- attributes ----------------------------------------------------------------------------------------------------

static struct shared_fd* reach_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  if (!info) return reach(request, number);
  return act_for(request) ? shared_fd_use(handle_of(info)->file) : NULL;
}

static void reply_attributes(fuse_req_t request, struct shared_fd* file, bool is_good) {
  struct stat about;
  if (!is_good || fstat(file->fd, &about) != 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_attr(request, &about, valid_s);
  shared_fd_leave(file);
}

static void get_attributes(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  struct shared_fd* const file = reach_open(request, number, info);
  reply_attributes(request, file, file != NULL);
}

static bool set_times(int fd, const struct stat* wanted, int which) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  if (which & FUSE_SET_ATTR_ATIME) times[0] = wanted->st_atim;
  if (which & FUSE_SET_ATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
  if (which & FUSE_SET_ATTR_MTIME) times[1] = wanted->st_mtim;
  if (which & FUSE_SET_ATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
  if (utimensat(fd, "", times, AT_EMPTY_PATH) == 0) return true;
  if (errno != EINVAL) return false;
  char path[fd_path_bytes];  // kernels before 5.8
  fd_path(fd, path);
  return utimensat(AT_FDCWD, path, times, 0) == 0;
}

static bool change(int fd, bool is_handle, const struct stat* wanted, int which) {
  char path[fd_path_bytes];
  fd_path(fd, path);
  const uid_t user = which & FUSE_SET_ATTR_UID ? wanted->st_uid : (uid_t)-1;
  const gid_t group = which & FUSE_SET_ATTR_GID ? wanted->st_gid : (gid_t)-1;
  if ((which & FUSE_SET_ATTR_MODE) && chmod(path, wanted->st_mode & 07777) != 0) return false;
  if ((which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) && fchownat(fd, "", user, group, AT_EMPTY_PATH) != 0)
    return false;
  if ((which & FUSE_SET_ATTR_SIZE) &&
      (is_handle ? ftruncate(fd, wanted->st_size) : truncate(path, wanted->st_size)) != 0)
    return false;
  return (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) == 0 || set_times(fd, wanted, which);
}

static void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
                           struct fuse_file_info* info) {
  struct shared_fd* const file = reach_open(request, number, info);
  reply_attributes(request, file, file && change(file->fd, info != NULL, wanted, which));
}

static void read_link(fuse_req_t request, fuse_ino_t number) {
  char target[PATH_MAX + 1];
  struct shared_fd* const file = reach(request, number);
  const ssize_t length = file ? readlinkat(file->fd, "", target, PATH_MAX) : -1;
  if (length < 0) {
    fuse_reply_err(request, errno);
  } else {
    target[length] = '\0';
    fuse_reply_readlink(request, target);
  }
  shared_fd_leave(file);
}

static void may_access(fuse_req_t request, fuse_ino_t number, int mask) {
  struct shared_fd* const file = reach(request, number);
  char path[fd_path_bytes];
  if (file) fd_path(file->fd, path);
  reply(request, file && faccessat(AT_FDCWD, path, mask, AT_EACCESS) == 0);
  shared_fd_leave(file);
}

static void about_system(fuse_req_t request, fuse_ino_t number) {
  struct statvfs about;
  struct shared_fd* const file = reach(request, number);
  if (!file || fstatvfs(file->fd, &about) != 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_statfs(request, &about);
  shared_fd_leave(file);
}

// ---- extended attributes -------------------------------------------------------------------------------------------

static void reply_value(fuse_req_t request, char* value, ssize_t length, size_t room) {
  if (length < 0)
    fuse_reply_err(request, errno);
  else if (room == 0)
    fuse_reply_xattr(request, (size_t)length);
  else
    fuse_reply_buf(request, value, (size_t)length);
  free(value);
}

static void get_attribute(fuse_req_t request, fuse_ino_t number, const char* name, size_t room) {
  struct shared_fd* const file = reach(request, number);
  char path[fd_path_bytes];
  char* const value = malloc(room + 1);
  if (file) fd_path(file->fd, path);
  reply_value(request, value, file && value ? getxattr(path, name, value, room) : -1, room);
  shared_fd_leave(file);
}

static void list_attributes(fuse_req_t request, fuse_ino_t number, size_t room) {
  struct shared_fd* const file = reach(request, number);
  char path[fd_path_bytes];
  char* const names = malloc(room + 1);
  if (file) fd_path(file->fd, path);
  reply_value(request, names, file && names ? listxattr(path, names, room) : -1, room);
  shared_fd_leave(file);
}

static void set_attribute(fuse_req_t request, fuse_ino_t number, const char* name, const char* value, size_t bytes,
                          int flags) {
  struct shared_fd* const file = reach(request, number);
  char path[fd_path_bytes];
  if (file) fd_path(file->fd, path);
  reply(request, file && setxattr(path, name, value, bytes, flags) == 0);
  shared_fd_leave(file);
}

static void remove_attribute(fuse_req_t request, fuse_ino_t number, const char* name) {
  struct shared_fd* const file = reach(request, number);
  char path[fd_path_bytes];
  if (file) fd_path(file->fd, path);
  reply(request, file && removexattr(path, name) == 0);
  shared_fd_leave(file);
}

// ---- directories ---------------------------------------------------------------------------------------------------

static void open_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  struct shared_fd* const directory = reach(request, number);
  const int fd = directory ? openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  info->fh = (uint64_t)fd;
  if (fd < 0)
    fuse_reply_err(request, errno);
  else if (fuse_reply_open(request, info) == -ENOENT)
    close(fd);
  shared_fd_leave(directory);
}

// The offset of an entry is that of the file system below.
static void read_directory(fuse_req_t request, fuse_ino_t number, size_t room, off_t at, struct fuse_file_info* info) {
  (void)number;
  const int fd = (int)info->fh;
  char* const answer = malloc(room);
  char* const entries = malloc(room);
  size_t filled = 0;
  // An entry of the answer has at least the size of the one that it is made of.
  long length = answer && entries && lseek(fd, at, SEEK_SET) == at ? syscall(SYS_getdents64, fd, entries, room) : -1;
  for (long i = 0; i < length;) {
    const struct dirent64* const entry = (const struct dirent64*)(const void*)(entries + i);
    const struct stat about = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
    const size_t bytes =
        fuse_add_direntry(request, answer + filled, room - filled, entry->d_name, &about, entry->d_off);
    if (bytes > room - filled) break;
    filled += bytes;
    i += entry->d_reclen;
  }
  if (length < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_buf(request, answer, filled);
  free(entries);
  free(answer);
}

static void close_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  (void)number;
  close((int)info->fh);
  fuse_reply_err(request, 0);
}

static void sync_directory(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info* info) {
  (void)number;
  reply(request, (only_data ? fdatasync((int)info->fh) : fsync((int)info->fh)) == 0);
}

// ---- all -----------------------------------------------------------------------------------------------------------

// The bits of setuid go when the file below is written, because that is done with the caller's rights.
static void begin(void* unused, struct fuse_conn_info* connection) {
  (void)unused;
  const unsigned unwanted = FUSE_CAP_READDIRPLUS | FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
                            FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE;
  const unsigned wanted = FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_ATOMIC_O_TRUNC |
                          FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV;
  connection->want = (connection->want & ~unwanted) | (connection->capable & wanted);
  connection->time_gran = 1;
}

struct fuse_lowlevel_ops all_operations(void) {
  struct fuse_lowlevel_ops all = {
      .init = begin,
      .lookup = look_up,
      .forget = forget,
      .forget_multi = forget_many,
      .getattr = get_attributes,
      .setattr = set_attributes,
      .readlink = read_link,
      .mknod = make_node,
      .mkdir = make_directory,
      .unlink = remove_name,
      .rmdir = remove_directory,
      .symlink = make_link,
      .rename = rename_file,
      .link = add_name,
      .create = create_file,
      .access = may_access,
      .statfs = about_system,
      .setxattr = set_attribute,
      .getxattr = get_attribute,
      .listxattr = list_attributes,
      .removexattr = remove_attribute,
      .opendir = open_directory,
      .readdir = read_directory,
      .releasedir = close_directory,
      .fsyncdir = sync_directory,
  };
  data_operations(&all);
  lock_operations(&all);
  return all;
}
