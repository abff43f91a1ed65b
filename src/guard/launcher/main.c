#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"

extern char **environ;

static bool has_succeeded(const struct outcome *outcome) {
  return !outcome->timed_out && WIFEXITED(outcome->status) && WEXITSTATUS(outcome->status) == 0;
}

/* No network configuration comes near, and src/guard reads no more than a megabyte of a record. */
#define MAX_CONFIG (512 * 1024)

/* Reads the configuration into memory, because a plugin may have to run twice. False if it is not kept. */
static bool read_input(struct call *call) {
  call->input = memfd_create("cni-config", MFD_CLOEXEC);
  if (call->input < 0) return false;
  copy_to(STDIN_FILENO, call->input);
  return lseek(call->input, 0, SEEK_CUR) <= MAX_CONFIG;
}

static _Noreturn void add(struct call *call, int state) {
  struct outcome outcome;
  forget_earlier(state, call);
  record_attachment(state, call, "started", NULL);
  announce_add(state, call);
  if (!run_plugin(call, -1, &outcome)) execute_plugin(call);
  bool completed = has_succeeded(&outcome);
  record_attachment(state, call, completed ? "completed" : "failed", &outcome);
  if (completed && has_queued(state, call)) start_replay(call);
  end_like(&outcome);
}

static _Noreturn void del(struct call *call, int state) {
  struct outcome outcome;
  if (!wait_for_turn(state, call)) ask_again("other DELs of the plugin fail and wait for it");
  if (!run_plugin(call, DEL_DEADLINE_MS, &outcome)) execute_plugin(call);
  if (has_succeeded(&outcome)) {
    note_working(state, call);
    note_released(state, call);
    unqueue(state, call);
    if (has_queued(state, call)) start_replay(call);
    end_like(&outcome);
  }
  /* One that hangs needs no processor: holding the others back would only add its time to theirs. */
  if (!outcome.timed_out) note_failing(state, call);
  if (is_absorbed(call, &outcome)) _exit(0);
  end_like(&outcome);
}

int main(int argc, char **argv) {
  struct call call = {.input = -1, .arguments = argv};
  if (argc < 1 || !find_plugin(&call, environ)) {
    fprintf(stderr, "unghost CNI guard: the runtime starts this under the name of a plugin\n");
    return 1;
  }
  bool is_add = strcmp(call.command, "ADD") == 0;
  bool is_del = strcmp(call.command, "DEL") == 0;
  if ((!is_add && !is_del) || !has_key(&call)) execute_plugin(&call);
  int state = open_state();
  if (state < 0 || !read_input(&call)) execute_plugin(&call);
  if (is_add) add(&call, state);
  del(&call, state);
}
