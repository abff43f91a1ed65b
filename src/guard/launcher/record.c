#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

#define MAX_KEY 240
#define MARKS_KEPT_S (24 * 3600)
/* One call in this many removes old marks. */
#define DROP_EVERY 32

static const char *const DIRECTORIES[] = {"attachments", "released", "failures", "queue", "brake", "adds"};

static bool is_ours_alone(const struct stat *about) {
  return S_ISDIR(about->st_mode) && about->st_uid == geteuid() && (about->st_mode & 022) == 0;
}

/* None of them is a link, or a directory into which others may write. */
static bool has_own_directories(int state) {
  struct stat about;
  for (size_t at = 0; at < sizeof DIRECTORIES / sizeof *DIRECTORIES; at++)
    if (fstatat(state, DIRECTORIES[at], &about, AT_SYMLINK_NOFOLLOW) != 0 ? errno != ENOENT : !is_ours_alone(&about))
      return false;
  return true;
}

/* The state, if it is ours alone. Without it the launcher executes the plugin and does nothing else. */
int open_state(void) {
  struct stat about;
  int state = open(STATE_DIR, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (state < 0) return -1;
  if (fstat(state, &about) == 0 && is_ours_alone(&about) && has_own_directories(state)) return state;
  close(state);
  return -1;
}

/* CNI's rule for a container id. Interface and plugin are held to it, too: all three become a file name. */
static bool is_plain(const char *text) {
  static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return text[0] != '\0' && text[0] != '.' && text[strspn(text, ALLOWED)] == '\0';
}

bool has_key(const struct call *call) {
  size_t length = strlen(call->container) + strlen(call->interface) + strlen(call->plugin);
  return length + 2 < MAX_KEY && is_plain(call->container) && is_plain(call->interface) && is_plain(call->plugin);
}

/* One attachment of one plugin. */
static void key_path(char path[PATH_MAX], const char *dir, const struct call *call) {
  snprintf(path, PATH_MAX, "%s/%s@%s@%s", dir, call->container, call->interface, call->plugin);
}

static long size_of(int file) {
  struct stat about;
  return fstat(file, &about) == 0 ? (long)about.st_size : 0;
}

static void write_boot_id(int to) {
  char id[64];
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? 0 : read(file, id, sizeof id);
  if (file >= 0) close(file);
  dprintf(to, "boot ");
  if (count > 0) write_all(to, id, (size_t)count);
  else dprintf(to, "\n");
}

/* What a later DEL may need: the variables of CNI, and PATH. Each is preceded by its length, for it may have any byte. */
static void write_environment(int to, char **environment) {
  for (char **entry = environment; *entry != NULL; entry++)
    if (strncmp(*entry, "CNI_", 4) == 0 || strncmp(*entry, "PATH=", 5) == 0)
      dprintf(to, "env %zu\n%s\n", strlen(*entry), *entry);
}

static bool write_part(int to, const char *name, int from) {
  dprintf(to, "%s %ld\n", name, size_of(from));
  lseek(from, 0, SEEK_SET);
  bool copied = copy_to(from, to);
  return copied && dprintf(to, "\n") == 1;
}

#define HEAD "attachment 1\nphase "

/*
 * Read by src/guard/attachment.ts. It is never synced here, in the caller's path: the keeper does that, and a lost
 * record is harmless. It is renamed into place, so that a reader finds all of it or none.
 */
void record_attachment(int state, const struct call *call, const char *phase, const struct outcome *outcome) {
  char draft[PATH_MAX], path[PATH_MAX];
  /* Launchers of several pid namespaces share the directory. */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  snprintf(draft, sizeof draft, "attachments/.%d.%ld", (int)getpid(), now.tv_nsec);
  key_path(path, "attachments", call);
  int file = openat(state, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, HEAD "%s\ntime %ld\nplugin %s\n", phase, (long)time(NULL), call->real);
  write_boot_id(file);
  write_environment(file, call->environment);
  bool whole = write_part(file, "config", call->input);
  if (outcome != NULL) whole = whole && write_part(file, "result", outcome->output);
  whole = dprintf(file, "end\n") == 4 && whole;
  close(file);
  if (!whole || renameat(state, draft, state, path) != 0) unlinkat(state, draft, 0);
}

/* Whether the ADD is known to have completed. */
bool has_completed(int state, const struct call *call) {
  static const char COMPLETED[] = HEAD "completed\n";
  char path[PATH_MAX], start[sizeof COMPLETED - 1];
  key_path(path, "attachments", call);
  int file = openat(state, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t count = file < 0 ? 0 : read(file, start, sizeof start);
  if (file >= 0) close(file);
  return count == sizeof start && memcmp(start, COMPLETED, sizeof start) == 0;
}

static void remove_file(int state, const char *dir, const struct call *call) {
  char path[PATH_MAX];
  key_path(path, dir, call);
  unlinkat(state, path, 0);
}

/* A new ADD of the same container. */
void forget_earlier(int state, const struct call *call) {
  remove_file(state, "released", call);
  remove_file(state, "queue", call);
}

/* In place of the agent, which does it at intervals: src/guard/keep.ts. */
static void drop_old_marks(int state) {
  struct stat about;
  int file = openat(state, "released", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *marks = file < 0 ? NULL : fdopendir(file);
  if (marks == NULL) return;
  for (struct dirent *entry; (entry = readdir(marks)) != NULL;)
    if (fstatat(file, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
        time(NULL) - about.st_mtime > MARKS_KEPT_S)
      unlinkat(file, entry->d_name, 0);
  closedir(marks);
}

/* Runtimes send a DEL again, and multus then has less of the configuration than the first time: the mark distinguishes it. */
void note_released(int state, const struct call *call) {
  char path[PATH_MAX];
  key_path(path, "released", call);
  int mark = openat(state, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (mark >= 0) close(mark);
  remove_file(state, "attachments", call);
  remove_file(state, "failures", call);
  if (getpid() % DROP_EVERY == 0) drop_old_marks(state);
}

void unqueue(int state, const struct call *call) {
  remove_file(state, "queue", call);
}

/* Whether a DEL of the same plugin waits: it answers again. */
bool has_queued(int state, const struct call *call) {
  int file = openat(state, "queue", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *queue = file < 0 ? NULL : fdopendir(file);
  if (queue == NULL) return false;
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(queue)) != NULL;) {
    const char *last = strrchr(entry->d_name, '@');
    found = last != NULL && strcmp(last + 1, call->plugin) == 0;
  }
  closedir(queue);
  return found;
}
