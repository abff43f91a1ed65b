#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"

/* Where `unghost cni-call` finds input and output of the plugin; src/guard/del-call.ts has the same numbers. */
#define CONFIG_FD 3
#define OUTPUT_FD 4
#define ERRORS_FD 5

/* The only answer that makes a failed DEL succeed. Anything else, a crash included, passes the failure on. */
#define ABSORBED 42
#define POLL_MS 10

/* unghost runs with CNI's variables and no others: it is configured by nothing else. */
static char **plain_environment(char **given) {
  size_t count = 0, used = 0;
  while (given[count] != NULL) count++;
  char **plain = calloc(count + 1, sizeof *plain);
  for (size_t at = 0; plain != NULL && at < count; at++)
    if (strncmp(given[at], "CNI_", 4) == 0 || strncmp(given[at], "PATH=", 5) == 0) plain[used++] = given[at];
  return plain;
}

static _Noreturn void execute(const struct call *call, const char *what, const char *end) {
  char path[PATH_MAX];
  char **environment = plain_environment(call->environment);
  int length = snprintf(path, sizeof path, "%s/unghost", call->home);
  if (environment == NULL || length >= PATH_MAX) _exit(1);
  char *arguments[] = {path, "cni-call", (char *)what, STATE_DIR, (char *)call->plugin, (char *)call->real, (char *)end, NULL};
  execve(path, arguments, environment);
  _exit(1);
}

/* Past the numbers that they are moved to, so that none is overwritten before it is moved. */
static void hand_over(int file, int number) {
  int apart = fcntl(file, F_DUPFD, 16);
  lseek(apart, 0, SEEK_SET);
  dup2(apart, number);
  close(apart);
}

static void silence(int number) {
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) dup2(null, number);
}

static void describe_end(const struct outcome *outcome, char *text, size_t size) {
  if (outcome->timed_out) snprintf(text, size, "timeout");
  else if (WIFSIGNALED(outcome->status)) snprintf(text, size, "signal %d", WTERMSIG(outcome->status));
  else snprintf(text, size, "exit %d", WEXITSTATUS(outcome->status));
}

bool is_absorbed(const struct call *call, const struct outcome *outcome) {
  char end[32];
  int status = 0;
  describe_end(outcome, end, sizeof end);
  pid_t launcher = getpid(), decision = fork();
  if (decision < 0) return false;
  if (decision == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    setpgid(0, 0);
    int handed[] = {call->input, outcome->output, outcome->errors};
    int apart[3];
    for (int at = 0; at < 3; at++) apart[at] = fcntl(handed[at], F_DUPFD_CLOEXEC, 16);
    for (int at = 0; at < 3; at++) hand_over(apart[at], CONFIG_FD + at);
    silence(STDIN_FILENO);
    silence(STDOUT_FILENO);
    execute(call, "del", end);
  }
  for (long until = now_ms() + DECISION_DEADLINE_MS; now_ms() < until; poll(NULL, 0, POLL_MS))
    if (waitpid(decision, &status, WNOHANG) == decision) return WIFEXITED(status) && WEXITSTATUS(status) == ABSORBED;
  kill(-decision, SIGKILL);
  return false;
}

/* Away from the caller: neither its pipes nor its wait are held. */
void start_replay(const struct call *call) {
  pid_t first = fork();
  if (first < 0) return;
  if (first > 0) {
    waitpid(first, NULL, 0);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) silence(number);
  execute(call, "replay", "");
}
