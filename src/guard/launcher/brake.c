/*
 * A storm of DELs must not starve ADDs. DELs of one plugin run a few at a time; while they fail, fewer, and after the
 * ADDs that run. All of it is locks of the kernel, which end with their process, and every wait is bounded.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

#define SLOTS 4
#define SLOTS_WHILE_FAILING 2
/* How long a failed DEL counts. */
#define FAILING_S 30
/* How long a DEL waits for its turn. */
#define TURN_MS 20000
/* Of that, at most this long for ADDs that run: one that hangs must not stop every DEL. */
#define ADDS_FIRST_MS 5000
#define POLL_MS 50

static int open_lock(int state, const char *dir, const struct call *call, int number) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s.%d", dir, call->plugin, number);
  return openat(state, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void failing_path(char path[PATH_MAX], const struct call *call) {
  snprintf(path, PATH_MAX, "brake/%s.failing", call->plugin);
}

static bool is_failing(int state, const struct call *call) {
  char path[PATH_MAX];
  struct stat about;
  failing_path(path, call);
  if (fstatat(state, path, &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
  long age = (long)(time(NULL) - about.st_mtime);
  return age >= -FAILING_S && age <= FAILING_S;
}

void note_failing(int state, const struct call *call) {
  char path[PATH_MAX];
  failing_path(path, call);
  int file = openat(state, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  futimens(file, NULL);
  close(file);
}

void note_working(int state, const struct call *call) {
  char path[PATH_MAX];
  failing_path(path, call);
  unlinkat(state, path, 0);
}

/* Held until the launcher ends; ADDs share it. */
void announce_add(int state, const struct call *call) {
  int lock = open_lock(state, "adds", call, 0);
  if (lock >= 0) flock(lock, LOCK_SH | LOCK_NB);
}

static bool is_adding(int state, const struct call *call) {
  int lock = open_lock(state, "adds", call, 0);
  if (lock < 0) return false;
  bool busy = flock(lock, LOCK_EX | LOCK_NB) != 0;
  close(lock);
  return busy;
}

/* A slot is held until the launcher ends. Where locks cannot be had at all nothing is held back. */
static bool take_slot(int state, const struct call *call, int count) {
  for (int number = 0; number < count; number++) {
    int lock = open_lock(state, "brake", call, number);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0) return true;
    close(lock);
  }
  return false;
}

/*
 * False if the DEL is to be sent again later: its plugin still fails others, and the runtime, which has a completed ADD,
 * retries. A roll-back runs in any case: a runtime that ignores its error would never send that DEL again.
 */
bool wait_for_turn(int state, const struct call *call) {
  long start = now_ms();
  for (;;) {
    bool failing = is_failing(state, call);
    bool adds_first = failing && now_ms() - start < ADDS_FIRST_MS && is_adding(state, call);
    if (!adds_first && take_slot(state, call, failing ? SLOTS_WHILE_FAILING : SLOTS)) return true;
    if (now_ms() - start >= TURN_MS) return !failing || !has_completed(state, call);
    poll(NULL, 0, POLL_MS);
  }
}
