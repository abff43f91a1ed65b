#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"

#define PATH_VARIABLE "CNI_PATH"
#define MAX_DIRS 65536

const char *value_of(char **environment, const char *name) {
  size_t length = strlen(name);
  for (char **entry = environment; *entry != NULL; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return "";
}

static bool join(char *path, const char *dir, size_t dir_length, const char *name) {
  int length = snprintf(path, PATH_MAX, "%.*s/%s", (int)dir_length, dir, name);
  return length > 0 && length < PATH_MAX;
}

/*
 * What runs now, whatever links lead to it: a directory that has it under the plugin's name is ours. An upgrade may have
 * replaced it since its start: then the new one counts. After an uninstallation there is none, and nothing to leave out.
 */
static bool stat_self(struct stat *self, char *home, const char *argv0) {
  static const char DELETED[] = " (deleted)";
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length > 0) {
    path[length] = '\0';
  } else if (realpath(argv0, path) == NULL) {
    return false;
  }
  if (stat(path, self) != 0) {
    size_t kept = strlen(path) - strlen(DELETED);
    if (strlen(path) < strlen(DELETED) || strcmp(path + kept, DELETED) != 0) return false;
    path[kept] = '\0';
    if (stat(path, self) != 0) *self = (struct stat){0};
  }
  char *end = strrchr(path, '/');
  if (end == NULL) return false;
  *end = '\0';
  strcpy(home, path);
  return true;
}

/* Goes through `dirs` as libcni does: the first regular file counts. Our own directories are left out of `kept`. */
static void search(struct call *call, const char *dirs, const struct stat *self, char *kept) {
  size_t used = 0;
  for (const char *dir = dirs; *dir != '\0';) {
    size_t length = strcspn(dir, ":\n");
    char path[PATH_MAX];
    struct stat found;
    bool has = length > 0 && join(path, dir, length, call->plugin) && stat(path, &found) == 0;
    bool is_ours = has && found.st_dev == self->st_dev && found.st_ino == self->st_ino;
    if (!is_ours && length > 0 && used + length + 2 < MAX_DIRS) {
      if (used > 0) kept[used++] = ':';
      memcpy(kept + used, dir, length);
      used += length;
      if (has && S_ISREG(found.st_mode) && call->real[0] == '\0') strcpy(call->real, path);
    }
    dir += length + (dir[length] != '\0');
  }
  kept[used] = '\0';
}

/* The directories of the real plugins, where the runtime has room for one directory only and names ours. */
static bool read_plugin_dirs(const char *home, char *dirs, size_t size) {
  char path[PATH_MAX];
  if (!join(path, home, strlen(home), "plugin-dirs")) return false;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t count = read(file, dirs, size - 1);
  close(file);
  if (count <= 0) return false;
  dirs[count] = '\0';
  return true;
}

static bool replace_path(struct call *call, char **environment, const char *kept) {
  size_t count = 0;
  while (environment[count] != NULL) count++;
  call->environment = calloc(count + 1, sizeof *call->environment);
  char *variable = NULL;
  if (call->environment == NULL || asprintf(&variable, PATH_VARIABLE "=%s", kept) < 0) return false;
  size_t name = strlen(PATH_VARIABLE "=");
  for (size_t at = 0; at < count; at++)
    call->environment[at] = strncmp(environment[at], PATH_VARIABLE "=", name) == 0 ? variable : environment[at];
  return true;
}

/* False without a name to search for. A plugin that is not found is an answer that execute_plugin gives. */
bool find_plugin(struct call *call, char **environment) {
  static char kept[MAX_DIRS], listed[MAX_DIRS];
  const char *argv0 = call->arguments[0];
  struct stat self;
  const char *slash = strrchr(argv0, '/');
  call->plugin = slash == NULL ? argv0 : slash + 1;
  call->command = value_of(environment, "CNI_COMMAND");
  call->container = value_of(environment, "CNI_CONTAINERID");
  call->interface = value_of(environment, "CNI_IFNAME");
  call->environment = environment;
  if (call->plugin[0] == '\0' || !stat_self(&self, call->home, argv0)) return false;
  search(call, value_of(environment, PATH_VARIABLE), &self, kept);
  if (call->real[0] == '\0' && read_plugin_dirs(call->home, listed, sizeof listed)) search(call, listed, &self, kept);
  return replace_path(call, environment, kept);
}
