/* Put and get by commands: reads one command a line, and answers each with one line, "CODE VALUE" or "CODE TEXT".
 *
 *   open PATH MODE [KEY=VALUE …]                MODE: letters of r, w and c; keys as in hocket_file_options; a | in
 *                                               `servers` stands for the end of a line
 *   put OFFSET FILE                             puts the bytes of FILE
 *   get OFFSET BYTES FILE                       gets at most BYTES into FILE
 *   put_strided OFFSET BLOCK STRIDE COUNT FILE
 *   get_strided OFFSET BLOCK STRIDE COUNT FILE
 *   put_list LIST FILE                          LIST: a file of lines "OFFSET BYTES"
 *   get_list LIST FILE
 *   put_all, get_all, put_strided_all, …        the same after the number of the operation
 *   size, version, flush, close
 *   fork COMMAND                                a forked process executes COMMAND
 *
 * $PUT_GET_PID overrides its process id. Closing the file $PUT_GET_FULL fails with EDQUOT for every caller in the
 * process. */
#define _GNU_SOURCE
#include <errno.h>
#include <hocket/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 4096, MOST_WORDS = 16, MOST_EXTENTS = 100000 };

static char* words[MOST_WORDS];
static int count, at;
static hocket_file* file;

pid_t getpid(void) {
  const char* number = getenv("PUT_GET_PID");
  return number ? (pid_t)atoi(number) : (pid_t)syscall(SYS_getpid);
}

int close(int descriptor) {
  const char* full = getenv("PUT_GET_FULL");
  struct stat this, that;
  const int fails = full && !fstat(descriptor, &this) && !stat(full, &that) && this.st_ino == that.st_ino;
  const int closed = (int)syscall(SYS_close, descriptor);
  if (!fails) return closed;
  errno = EDQUOT;
  return -1;
}

static char* word(void) {
  if (at < count) return words[at++];
  fprintf(stderr, "put_get: a word is missing after '%s'\n", words[count - 1]);
  exit(2);
}

static long long number(void) { return strtoll(word(), NULL, 0); }

static void* memory(size_t bytes) {
  void* got = malloc(bytes + 1);
  if (got) return got;
  fprintf(stderr, "put_get: no memory\n");
  exit(2);
}

static char* read_all(const char* path, size_t* bytes) {
  FILE* from = fopen(path, "rb");
  if (!from || fseek(from, 0, SEEK_END) != 0) {
    perror(path);
    exit(2);
  }
  *bytes = (size_t)ftell(from);
  rewind(from);
  char* data = memory(*bytes);
  if (fread(data, 1, *bytes, from) != *bytes) exit(2);
  fclose(from);
  return data;
}

static void write_all(const char* path, const void* data, size_t bytes) {
  FILE* to = fopen(path, "wb");
  if (!to || fwrite(data, 1, bytes, to) != bytes || fclose(to) != 0) {
    perror(path);
    exit(2);
  }
}

static void answer(int status, long long value) {
  if (status < 0)
    printf("%d %s\n", status, hocket_error_text(status));
  else
    printf("%d %lld\n", status, value);
  fflush(stdout);
}

static void take_option(hocket_file_options* options, char* pair) {
  char* value = strchr(pair, '=');
  if (!value) exit(2);
  *value++ = '\0';
  if (!strcmp(pair, "servers")) {
    for (char* c = value; *c; ++c) {
      if (*c == '|') *c = '\n';
      if (*c == ',') *c = ' ';
    }
    options->servers = value;
  }
  if (!strcmp(pair, "application")) options->application = value;
  if (!strcmp(pair, "participants")) options->participants = atoi(value);
  if (!strcmp(pair, "group")) options->group = strtoull(value, NULL, 0);
  if (!strcmp(pair, "readers")) options->readers = atoi(value);
  if (!strcmp(pair, "wait_s")) options->wait_s = atof(value);
}

static int open_file(void) {
  hocket_file_options options = {0};
  const char* path = word();
  const char* letters = word();
  int mode = 0;
  if (strchr(letters, 'r')) mode |= HOCKET_FILE_READ;
  if (strchr(letters, 'w')) mode |= HOCKET_FILE_WRITE;
  if (strchr(letters, 'c')) mode |= HOCKET_FILE_CREATE;
  while (at < count) take_option(&options, word());
  return hocket_file_open(path, mode, &options, &file);
}

static int put(int strided, int collective) {
  const unsigned long long operation = collective ? (unsigned long long)number() : 0;
  const long long offset = number();
  const long long block = strided ? number() : 0, stride = strided ? number() : 0, blocks = strided ? number() : 0;
  size_t bytes;
  char* data = read_all(word(), &bytes);
  const int64_t length = (int64_t)bytes;
  int status;
  if (strided)
    status = collective ? hocket_file_put_strided_all(file, operation, offset, block, stride, blocks, data)
                        : hocket_file_put_strided(file, offset, block, stride, blocks, data);
  else
    status = collective ? hocket_file_put_all(file, operation, offset, data, length)
                        : hocket_file_put(file, offset, data, length);
  free(data);
  return status;
}

static int get(int strided, int collective, int64_t* got) {
  const unsigned long long operation = collective ? (unsigned long long)number() : 0;
  const long long offset = number(), block = number();
  const long long stride = strided ? number() : 0, blocks = strided ? number() : 1;
  const long long bytes = block * blocks;
  char* data = memory(bytes > 0 ? (size_t)bytes : 0);
  int status;
  if (strided)
    status = collective ? hocket_file_get_strided_all(file, operation, offset, block, stride, blocks, data, got)
                        : hocket_file_get_strided(file, offset, block, stride, blocks, data, got);
  else
    status = collective ? hocket_file_get_all(file, operation, offset, data, bytes, got)
                        : hocket_file_get(file, offset, data, bytes, got);
  write_all(word(), data, (size_t)*got);
  free(data);
  return status;
}

// A list of a file has at most MOST_EXTENTS.
static int64_t offsets[MOST_EXTENTS], lengths[MOST_EXTENTS];

static int64_t read_list(void) {
  long long offset, bytes;
  int64_t extents = 0;
  FILE* from = fopen(word(), "r");
  while (from && fscanf(from, "%lld %lld", &offset, &bytes) == 2) {
    if (extents == MOST_EXTENTS) exit(2);
    offsets[extents] = offset;
    lengths[extents++] = bytes;
  }
  if (!from || fclose(from) != 0) exit(2);
  return extents;
}

static int put_list(int collective) {
  const unsigned long long operation = collective ? (unsigned long long)number() : 0;
  const int64_t extents = read_list();
  size_t bytes;
  char* data = read_all(word(), &bytes);
  const int status = collective ? hocket_file_put_list_all(file, operation, extents, offsets, lengths, data)
                                : hocket_file_put_list(file, extents, offsets, lengths, data);
  free(data);
  return status;
}

// Writes the whole memory, which held dots before.
static int get_list(int collective, int64_t* got) {
  const unsigned long long operation = collective ? (unsigned long long)number() : 0;
  const int64_t extents = read_list();
  size_t bytes = 0;
  for (int64_t i = 0; i < extents; ++i) bytes += lengths[i] > 0 ? (size_t)lengths[i] : 0;
  char* data = memory(bytes);
  memset(data, '.', bytes);
  const int status = collective ? hocket_file_get_list_all(file, operation, extents, offsets, lengths, data, got)
                                : hocket_file_get_list(file, extents, offsets, lengths, data, got);
  write_all(word(), data, bytes);
  free(data);
  return status;
}

static void carry_out(const char* command);

static void carry_out_in_child(const char* command) {
  const pid_t child = fork();
  if (child == 0) {
    carry_out(command);
    _exit(0);
  }
  if (child < 0 || waitpid(child, NULL, 0) != child) exit(2);
}

static void carry_out(const char* command) {
  if (!strcmp(command, "fork")) {
    carry_out_in_child(word());
    return;
  }
  const int strided = strstr(command, "_strided") != NULL, collective = strstr(command, "_all") != NULL;
  int64_t value = 0;
  int status = 0;
  if (!strcmp(command, "open")) {
    status = open_file();
  } else if (!strncmp(command, "put_list", 8)) {
    status = put_list(collective);
  } else if (!strncmp(command, "get_list", 8)) {
    status = get_list(collective, &value);
  } else if (!strncmp(command, "put", 3)) {
    status = put(strided, collective);
  } else if (!strncmp(command, "get", 3)) {
    status = get(strided, collective, &value);
  } else if (!strcmp(command, "size")) {
    status = hocket_file_size(file, &value);
  } else if (!strcmp(command, "version")) {
    status = hocket_file_version(file, &value);
  } else if (!strcmp(command, "flush")) {
    status = hocket_file_flush(file);
  } else if (!strcmp(command, "close")) {
    status = hocket_file_close(file);
    file = NULL;
  } else {
    fprintf(stderr, "put_get: no command '%s'\n", command);
    exit(2);
  }
  answer(status, (long long)value);
}

int main(void) {
  static char line[LONGEST];
  while (fgets(line, sizeof line, stdin)) {
    count = at = 0;
    for (char* next = strtok(line, " \n"); next && count < MOST_WORDS; next = strtok(NULL, " \n"))
      words[count++] = next;
    if (count > 0) carry_out(word());
  }
  return hocket_file_close(file) < 0;
}
