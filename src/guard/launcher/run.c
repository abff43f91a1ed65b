#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

/* How long what a plugin leaves running may still write after the plugin's own end. */
#define LAST_OUTPUT_MS 1000
/* How often the end of the plugin is checked while it writes nothing: a process it left running may hold its pipes. */
#define POLL_MS 100
#define GRACE_MS 1000

/* CNI's code for "try again later". */
_Noreturn void ask_again(const char *reason) {
  dprintf(STDOUT_FILENO, "{\"code\":11,\"msg\":\"%s\"}", reason);
  _exit(1);
}

long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool write_all(int to, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(to, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    count -= (size_t)written;
  }
  return true;
}

bool copy_to(int from, int to) {
  char buffer[16384];
  for (;;) {
    ssize_t count = read(from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    if (!write_all(to, buffer, (size_t)count)) return false;
  }
}

/* libcni's message for a plugin that it does not find, with CNI's code for its errors. */
static _Noreturn void report_missing(const struct call *call) {
  printf("{\"code\":999,\"msg\":\"failed to find plugin \\\"%s\\\" in path [%s]\"}", call->plugin,
         value_of(call->environment, "CNI_PATH"));
  fflush(stdout);
  _exit(1);
}

/* In place of the launcher: standard input is the configuration, whether it was read before or not. */
_Noreturn void execute_plugin(const struct call *call) {
  if (call->real[0] == '\0') report_missing(call);
  if (call->input >= 0) {
    lseek(call->input, 0, SEEK_SET);
    dup2(call->input, STDIN_FILENO);
  }
  call->arguments[0] = (char *)call->real;
  execve(call->real, call->arguments, call->environment);
  fprintf(stderr, "executing %s: %s\n", call->real, strerror(errno));
  _exit(1);
}

static pid_t start(const struct call *call, const int output[2], const int errors[2], pid_t launcher) {
  pid_t plugin = fork();
  if (plugin != 0) return plugin;
  /* The runtime ends a plugin that takes too long with SIGKILL, and knows the launcher only. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  dup2(output[1], STDOUT_FILENO);
  dup2(errors[1], STDERR_FILENO);
  execute_plugin(call);
}

/* False when the pipe has ended. */
static bool take(int pipe, int kept, int live) {
  char buffer[16384];
  ssize_t count = read(pipe, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  write_all(kept, buffer, (size_t)count);
  if (live >= 0) write_all(live, buffer, (size_t)count);
  return true;
}

static void end_group(pid_t plugin, int *status) {
  kill(-plugin, SIGTERM);
  for (long until = now_ms() + GRACE_MS; now_ms() < until;) {
    if (waitpid(plugin, status, WNOHANG) == plugin) break;
    poll(NULL, 0, POLL_MS / 10);
  }
  kill(-plugin, SIGKILL);
  /* One in an uninterruptible sleep is not waited for. */
  for (long until = now_ms() + GRACE_MS; now_ms() < until;) {
    if (waitpid(plugin, status, WNOHANG) != 0) return;
    poll(NULL, 0, POLL_MS / 10);
  }
}

/* Readable when the plugin has ended. Without it (Linux before 5.3) polling finds its end. */
static int watch_end(pid_t plugin) {
  return (int)syscall(SYS_pidfd_open, plugin, 0);
}

static void attend(pid_t plugin, int output, int errors, int deadline_ms, struct outcome *outcome) {
  struct pollfd watched[] = {{.fd = output, .events = POLLIN},
                             {.fd = errors, .events = POLLIN},
                             {.fd = watch_end(plugin), .events = POLLIN}};
  bool ended = false;
  long deadline = deadline_ms < 0 ? LONG_MAX : now_ms() + deadline_ms;
  while (!ended || watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (!ended && waitpid(plugin, &outcome->status, WNOHANG) == plugin) {
      ended = true;
      deadline = now_ms() + LAST_OUTPUT_MS;
      if (watched[2].fd >= 0) close(watched[2].fd);
      watched[2].fd = -1;
      continue;
    }
    if (now_ms() >= deadline) {
      if (ended) break;
      outcome->timed_out = true;
      end_group(plugin, &outcome->status);
      break;
    }
    if (poll(watched, 3, POLL_MS) <= 0) continue;
    if (watched[0].revents != 0 && !take(output, outcome->output, -1)) watched[0].fd = -1;
    if (watched[1].revents != 0 && !take(errors, outcome->errors, STDERR_FILENO)) watched[1].fd = -1;
  }
}

/* False when it could not be started: nothing has run then. A negative deadline is none. */
bool run_plugin(const struct call *call, int deadline_ms, struct outcome *outcome) {
  int output[2], errors[2];
  *outcome = (struct outcome){.output = memfd_create("output", MFD_CLOEXEC),
                              .errors = memfd_create("errors", MFD_CLOEXEC)};
  if (outcome->output < 0 || outcome->errors < 0) return false;
  if (pipe2(output, O_CLOEXEC) != 0) return false;
  if (pipe2(errors, O_CLOEXEC) != 0) return false;
  lseek(call->input, 0, SEEK_SET);
  void (*before)(int) = signal(SIGPIPE, SIG_IGN);
  pid_t plugin = start(call, output, errors, getpid());
  if (plugin < 0) return false;
  close(output[1]);
  close(errors[1]);
  attend(plugin, output[0], errors[0], deadline_ms, outcome);
  close(output[0]);
  close(errors[0]);
  signal(SIGPIPE, before);
  return true;
}

/* The plugin's own output and the plugin's own end. */
_Noreturn void end_like(const struct outcome *outcome) {
  lseek(outcome->output, 0, SEEK_SET);
  copy_to(outcome->output, STDOUT_FILENO);
  if (outcome->timed_out) {
    if (lseek(outcome->output, 0, SEEK_END) == 0) ask_again("the plugin did not end in time, and was stopped");
    _exit(1);
  }
  if (WIFSIGNALED(outcome->status)) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(outcome->status), SIG_DFL);
    raise(WTERMSIG(outcome->status));
  }
  _exit(WIFEXITED(outcome->status) ? WEXITSTATUS(outcome->status) : 1);
}
