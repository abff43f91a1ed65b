#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

#define MAX_KEY 240

/* The state, if it is ours alone. Without it the launcher executes the plugin and does nothing else. */
int open_state(void) {
  struct stat about;
  int state = open(STATE_DIR, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (state < 0) return -1;
  if (fstat(state, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & 022) == 0) return state;
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
  dprintf(file, "attachment 1\nphase %s\ntime %ld\nplugin %s\n", phase, (long)time(NULL), call->real);
  write_boot_id(file);
  write_environment(file, call->environment);
  bool whole = write_part(file, "config", call->input);
  if (outcome != NULL) whole = whole && write_part(file, "result", outcome->output);
  whole = dprintf(file, "end\n") == 4 && whole;
  close(file);
  if (!whole || renameat(state, draft, state, path) != 0) unlinkat(state, draft, 0);
}

void forget_attachment(int state, const struct call *call) {
  char path[PATH_MAX];
  key_path(path, "attachments", call);
  unlinkat(state, path, 0);
  key_path(path, "failures", call);
  unlinkat(state, path, 0);
}

void unqueue(int state, const struct call *call) {
  char path[PATH_MAX];
  key_path(path, "queue", call);
  unlinkat(state, path, 0);
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
