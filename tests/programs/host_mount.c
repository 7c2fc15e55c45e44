// host_mount STORE MOUNTPOINT [late] [stale] [small] [gluster]: mounts a directory that several hosts share, as one
// host's client of a network file system does. It returns when the mount is there; a process in the background serves
// it.
//
// The kernel keeps the pages and attributes of files. Others' changes are seen after an open, as on NFS
// (close-to-open): an open drops what the kernel keeps of a file whose size or times are others than before. A file's
// names are asked for each time. Locks (fcntl, flock) are those of the store, so hosts exclude each other. As on NFS, a
// process that gets one sees what others have written under it.
//
//   late   writes stay in this process until close, fsync, truncation, or 1 MiB of them, as in an NFS client
//   stale  an open drops nothing, so readers see old bytes: it shows that a test notices that
//   small  a file system that refuses bytes beyond 300,000 of a file (EDQUOT), when they come to the store
//   gluster  the mount has the type and the source of a mount by GlusterFS, by which all hosts find one name for it
//
// One thread serves all requests, so nothing needs a mutex.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host_mount.h"

static const double attributes_s = 600, names_s = 0;
enum { most_late_bytes = 1 << 20, small_bytes = 300000, unsure_ns = 20 * 1000 * 1000 };

static struct node root = {.data_fd = -1, .last = &root.first};
static struct node* all;
struct fuse_session* session;
bool is_stale;
static bool is_late, is_small;

struct node* node_of(fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? &root : (struct node*)number;
}

int reopened(const struct node* node, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", node->path_fd);
  return open(path, flags | O_CLOEXEC);
}

static void reply(fuse_req_t request, bool is_good) { fuse_reply_err(request, is_good ? 0 : errno); }

// ---- writes that wait ----------------------------------------------------------------------------------------------

static bool put(const struct node* node, const char* data, size_t bytes, off_t at) {
  if (is_small && at + (off_t)bytes > small_bytes) return errno = EDQUOT, false;
  while (bytes > 0) {
    const ssize_t some = pwrite(node->data_fd, data, bytes, at);
    if (some < 0) return false;
    data += some, bytes -= (size_t)some, at += some;
  }
  return true;
}

bool publish(struct node* node) {
  int error = 0;
  while (node->first) {
    struct piece* const piece = node->first;
    if (!put(node, piece->data, piece->bytes, piece->at)) error = errno;
    node->first = piece->next;
    free(piece);
  }
  node->last = &node->first;
  node->late_bytes = 0;
  node->late_end = 0;
  errno = error;
  return error == 0;
}

static bool keep(struct node* node, const char* data, size_t bytes, off_t at) {
  struct piece* const piece = malloc(sizeof *piece + bytes);
  if (!piece) return false;
  piece->next = NULL;
  piece->at = at;
  piece->bytes = bytes;
  memcpy(piece->data, data, bytes);
  *node->last = piece;
  node->last = &piece->next;
  node->late_bytes += bytes;
  if (node->late_end < at + (off_t)bytes) node->late_end = at + (off_t)bytes;
  clock_gettime(CLOCK_REALTIME, &node->late_time);
  return node->late_bytes < most_late_bytes || publish(node);
}

static void overlay(const struct node* node, char* memory, size_t bytes, off_t at) {
  for (const struct piece* piece = node->first; piece; piece = piece->next) {
    const off_t from = piece->at > at ? piece->at : at;
    const off_t piece_end = piece->at + (off_t)piece->bytes, end = at + (off_t)bytes;
    const off_t to = piece_end < end ? piece_end : end;
    if (from < to) memcpy(memory + (from - at), piece->data + (from - piece->at), (size_t)(to - from));
  }
}

// ---- attributes and names ------------------------------------------------------------------------------------------

static bool attributes(const struct node* node, struct stat* about) {
  if (fstat(node->path_fd, about) != 0) return false;
  if (!node->first) return true;
  if (about->st_size < node->late_end) about->st_size = node->late_end;
  about->st_mtim = about->st_ctim = node->late_time;
  return true;
}

static struct node* find_node(int fd, const struct stat* about) {
  for (struct node* node = all; node; node = node->next)
    if (node->inode == about->st_ino) return close(fd), node;
  struct node* const node = calloc(1, sizeof *node);
  if (!node) return NULL;
  *node = (struct node){.next = all, .inode = about->st_ino, .path_fd = fd, .data_fd = -1};
  node->last = &node->first;
  return all = node;
}

static void free_unused(struct node* node) {
  if (node == &root || node->lookups > 0 || node->opens > 0) return;
  struct node** at = &all;
  while (*at != node) at = &(*at)->next;
  *at = node->next;
  close(node->path_fd);
  free(node);
}

static struct node* find_entry(fuse_ino_t parent, const char* name, struct fuse_entry_param* entry) {
  const int fd = openat(node_of(parent)->path_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &entry->attr) != 0) return NULL;
  struct node* const node = find_node(fd, &entry->attr);
  if (!node || !attributes(node, &entry->attr)) return NULL;
  ++node->lookups;
  entry->ino = (fuse_ino_t)node;
  entry->attr_timeout = attributes_s;
  entry->entry_timeout = names_s;
  return node;
}

static void reply_entry(fuse_req_t request, fuse_ino_t parent, const char* name, bool is_made) {
  struct fuse_entry_param entry = {0};
  if (is_made && find_entry(parent, name, &entry))
    fuse_reply_entry(request, &entry);
  else
    fuse_reply_err(request, errno);
}

static void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply_entry(request, parent, name, true);
}

static void forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups) {
  struct node* const node = node_of(number);
  if (node != &root) {
    node->lookups -= lookups;
    free_unused(node);
  }
  fuse_reply_none(request);
}

static void reply_attributes(fuse_req_t request, const struct node* node, bool is_good) {
  struct stat about;
  if (is_good && attributes(node, &about))
    fuse_reply_attr(request, &about, attributes_s);
  else
    fuse_reply_err(request, errno);
}

static void get_attributes(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  (void)info;
  reply_attributes(request, node_of(number), true);
}

static bool change(const struct node* node, const struct stat* wanted, int which) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", node->path_fd);
  const uid_t user = which & FUSE_SET_ATTR_UID ? wanted->st_uid : (uid_t)-1;
  const gid_t group = which & FUSE_SET_ATTR_GID ? wanted->st_gid : (gid_t)-1;
  struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  if (which & FUSE_SET_ATTR_ATIME) times[0] = wanted->st_atim;
  if (which & FUSE_SET_ATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
  if (which & FUSE_SET_ATTR_MTIME) times[1] = wanted->st_mtim;
  if (which & FUSE_SET_ATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
  if ((which & FUSE_SET_ATTR_MODE) && chmod(path, wanted->st_mode & 07777) != 0) return false;
  if ((which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) && chown(path, user, group) != 0) return false;
  if ((which & FUSE_SET_ATTR_SIZE) && truncate(path, wanted->st_size) != 0) return false;
  return (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) == 0 || utimensat(AT_FDCWD, path, times, 0) == 0;
}

static void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
                           struct fuse_file_info* info) {
  (void)info;
  struct node* const node = node_of(number);
  reply_attributes(request, node, publish(node) && change(node, wanted, which));
}

static void make_directory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  reply_entry(request, parent, name, mkdirat(node_of(parent)->path_fd, name, mode) == 0);
}

static void make_link(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  reply_entry(request, parent, name, symlinkat(target, node_of(parent)->path_fd, name) == 0);
}

static void add_name(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", node_of(number)->path_fd);
  const int directory = node_of(parent)->path_fd;
  reply_entry(request, parent, name, linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) == 0);
}

static void read_link(fuse_req_t request, fuse_ino_t number) {
  char target[4096] = "";
  if (readlinkat(node_of(number)->path_fd, "", target, sizeof target - 1) < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_readlink(request, target);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply(request, unlinkat(node_of(parent)->path_fd, name, 0) == 0);
}

static void remove_directory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply(request, unlinkat(node_of(parent)->path_fd, name, AT_REMOVEDIR) == 0);
}

static void rename_file(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to, const char* new_name,
                        unsigned flags) {
  reply(request, renameat2(node_of(from)->path_fd, name, node_of(to)->path_fd, new_name, flags) == 0);
}

static void about_system(fuse_req_t request, fuse_ino_t number) {
  struct statvfs about;
  if (fstatvfs(node_of(number)->path_fd, &about) == 0)
    fuse_reply_statfs(request, &about);
  else
    fuse_reply_err(request, errno);
}

// ---- open files ----------------------------------------------------------------------------------------------------

static bool is_same_time(struct timespec one, struct timespec other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// A file system notes times of change in steps, so a file that has changed just now may change once more unnoticed.
static bool is_recent(struct timespec changed) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec - changed.tv_sec) * 1000000000LL + now.tv_nsec - changed.tv_nsec < unsure_ns;
}

bool has_changed(struct node* node) {
  struct stat about;
  if (!attributes(node, &about)) return true;
  const bool is_same = node->is_known && node->known.st_size == about.st_size &&
                       is_same_time(node->known.st_mtim, about.st_mtim) &&
                       is_same_time(node->known.st_ctim, about.st_ctim);
  node->known = about;
  node->is_known = !is_recent(about.st_ctim);
  return !is_same;
}

static bool begin_open(struct node* node, struct fuse_file_info* info) {
  if (node->data_fd < 0) node->data_fd = reopened(node, O_RDWR);
  if (node->data_fd < 0) node->data_fd = reopened(node, O_RDONLY);
  if (node->data_fd < 0) return false;
  struct handle* const handle = malloc(sizeof *handle);
  if (!handle) return false;
  *handle = (struct handle){(info->flags & O_ACCMODE) != O_RDONLY, -1};
  info->fh = (uintptr_t)handle;
  ++node->opens;
  const bool drops = has_changed(node) && !is_stale;
  info->keep_cache = !drops;
  if (drops) fuse_lowlevel_notify_inval_inode(session, (fuse_ino_t)node, -1, 0);
  return true;
}

static void end_open(struct node* node, struct handle* handle) {
  if (handle->writes) publish(node);
  if (handle->lock_fd >= 0) close(handle->lock_fd);
  free(handle);
  if (--node->opens > 0) return;
  close(node->data_fd);
  node->data_fd = -1;
  free_unused(node);
}

static void open_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  if (!begin_open(node_of(number), info))
    fuse_reply_err(request, errno);
  else if (fuse_reply_open(request, info) == -ENOENT)
    end_open(node_of(number), handle_of(info));
}

static void create_file(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                        struct fuse_file_info* info) {
  struct fuse_entry_param entry = {0};
  const int flags = O_CREAT | O_RDWR | O_CLOEXEC | (info->flags & O_EXCL);
  const int fd = openat(node_of(parent)->path_fd, name, flags, mode);
  struct node* const node = fd < 0 ? NULL : find_entry(parent, name, &entry);
  if (fd >= 0) close(fd);
  if (node && begin_open(node, info))
    fuse_reply_create(request, &entry, info);
  else
    fuse_reply_err(request, errno);
}

static void read_data(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t at, struct fuse_file_info* info) {
  (void)info;
  const struct node* const node = node_of(number);
  char* const memory = calloc(1, bytes + 1);
  ssize_t found = memory ? pread(node->data_fd, memory, bytes, at) : -1;
  if (found < 0) {
    fuse_reply_err(request, errno);
  } else {
    if (at + found < node->late_end)
      found = node->late_end - at < (off_t)bytes ? (ssize_t)(node->late_end - at) : (ssize_t)bytes;
    overlay(node, memory, (size_t)found, at);
    fuse_reply_buf(request, memory, (size_t)found);
  }
  free(memory);
}

static void write_data(fuse_req_t request, fuse_ino_t number, const char* data, size_t bytes, off_t at,
                       struct fuse_file_info* info) {
  struct node* const node = node_of(number);
  const bool waits = is_late && (info->flags & O_DIRECT) == 0;
  if (waits ? keep(node, data, bytes, at) : publish(node) && put(node, data, bytes, at))
    fuse_reply_write(request, bytes);
  else
    fuse_reply_err(request, errno);
}

// ---- close and sync ------------------------------------------------------------------------------------------------

static void flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  const bool is_good = !handle_of(info)->writes || publish(node_of(number));
  const int error = errno;
  leave_locks(node_of(number), info->lock_owner);
  errno = error;
  reply(request, is_good);
}

static void sync_file(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info* info) {
  (void)only_data, (void)info;
  reply(request, publish(node_of(number)));
}

static void allocate(fuse_req_t request, fuse_ino_t number, int mode, off_t at, off_t bytes,
                     struct fuse_file_info* info) {
  (void)info;
  struct node* const node = node_of(number);
  reply(request, publish(node) && fallocate(node->data_fd, mode, at, bytes) == 0);
}

static void close_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  end_open(node_of(number), handle_of(info));
  fuse_reply_err(request, 0);
}

// ---- directories ---------------------------------------------------------------------------------------------------

static DIR* directory_of(const struct fuse_file_info* info) { return (DIR*)(uintptr_t)info->fh; }

static void open_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  const int fd = openat(node_of(number)->path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const directory = fd < 0 ? NULL : fdopendir(fd);
  info->fh = (uintptr_t)directory;
  if (directory)
    fuse_reply_open(request, info);
  else
    fuse_reply_err(request, errno);
}

static void read_directory(fuse_req_t request, fuse_ino_t number, size_t room, off_t at, struct fuse_file_info* info) {
  (void)number;
  char* const answer = malloc(room);
  size_t filled = 0;
  seekdir(directory_of(info), at);
  for (const struct dirent* entry; answer && (entry = readdir(directory_of(info)));) {
    const struct stat about = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
    const size_t bytes =
        fuse_add_direntry(request, answer + filled, room - filled, entry->d_name, &about, telldir(directory_of(info)));
    if (bytes > room - filled) break;
    filled += bytes;
  }
  fuse_reply_buf(request, answer, filled);
  free(answer);
}

static void close_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  (void)number;
  closedir(directory_of(info));
  fuse_reply_err(request, 0);
}

// ---- the mount -----------------------------------------------------------------------------------------------------

// With these, the kernel would look for others' changes by itself, or hold writes that nobody else can see.
static void begin(void* unused, struct fuse_conn_info* connection) {
  (void)unused;
  connection->want &=
      ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS);
  connection->time_gran = 1;
}

static struct fuse_lowlevel_ops operations = {
    .init = begin,
    .lookup = look_up,
    .forget = forget,
    .getattr = get_attributes,
    .setattr = set_attributes,
    .readlink = read_link,
    .mkdir = make_directory,
    .unlink = remove_name,
    .rmdir = remove_directory,
    .symlink = make_link,
    .rename = rename_file,
    .link = add_name,
    .create = create_file,
    .open = open_file,
    .read = read_data,
    .write = write_data,
    .flush = flush,
    .fsync = sync_file,
    .fallocate = allocate,
    .release = close_file,
    .statfs = about_system,
    .opendir = open_directory,
    .readdir = read_directory,
    .releasedir = close_directory,
};

static bool serve(void) {
  struct fuse_buf message = {0};
  struct pollfd device = {fuse_session_fd(session), POLLIN, 0};
  enum { again_ms = 2 };
  while (!fuse_session_exited(session)) {
    const int ready = poll(&device, 1, has_waiting_locks() ? again_ms : -1);
    const int received = ready > 0 ? fuse_session_receive_buf(session, &message) : 0;
    if (received > 0) fuse_session_process_buf(session, &message);
    if (received < 0 && received != -EINTR && received != -EAGAIN) return false;
    try_locks_again();
  }
  return true;
}

int main(int count, char** words) {
  if (count < 3) return fprintf(stderr, "usage: host_mount STORE MOUNTPOINT [late] [stale] [small] [gluster]\n"), 2;
  char* of_itself = "-oallow_other,default_permissions,fsname=host_mount,subtype=shared";
  char* of_gluster = "-oallow_other,default_permissions,fsname=storage:/volume,subtype=glusterfs";
  char* options[] = {words[0], of_itself, NULL};
  for (int i = 3; i < count; ++i) {
    is_late = is_late || strcmp(words[i], "late") == 0;
    is_stale = is_stale || strcmp(words[i], "stale") == 0;
    is_small = is_small || strcmp(words[i], "small") == 0;
    if (strcmp(words[i], "gluster") == 0) options[1] = of_gluster;
  }
  lock_operations(&operations);
  umask(0);
  root.path_fd = open(words[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root.path_fd < 0) return perror(words[1]), 1;
  struct fuse_args arguments = FUSE_ARGS_INIT(2, options);
  session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (!session || fuse_session_mount(session, words[2]) != 0 || fuse_daemonize(0) != 0) return 1;
  return serve() ? 0 : 1;
}
