/*
 * The launcher is what a runtime starts in place of a CNI plugin: it runs the real one. It is C because it is in the
 * path of every pod start, where the engine of the rest of unghost does not fit; docs/decisions/cni-guard.md has the
 * numbers. It decides nothing: a DEL that failed is decided by `unghost` (src/guard/del-call.ts).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Overridden by tests. */
#ifndef STATE_DIR
#define STATE_DIR "/var/lib/unghost/cni"
#endif

/* Below kubelet's two minutes for StopPodSandbox: the caller gets an answer and not a closed connection. */
#define DEL_DEADLINE_MS 110000
/* Its own deadlines are shorter; this ends one that hangs. */
#define DECISION_DEADLINE_MS 100000

/* One CNI call. */
struct call {
  char **arguments;
  const char *plugin;    /* the name the runtime asked for */
  char real[PATH_MAX];   /* the plugin to run; empty when none was found */
  char home[PATH_MAX];   /* where the launcher and its companions are */
  char **environment;    /* as given, with CNI_PATH without our directory */
  const char *command;   /* CNI_COMMAND */
  const char *container; /* CNI_CONTAINERID */
  const char *interface; /* CNI_IFNAME */
  int input;             /* a file with the network configuration */
};

/* How a plugin ended. Its standard output is in `output`; its standard error went to the caller at once, too. */
struct outcome {
  int status; /* of waitpid */
  bool timed_out;
  int output;
  int errors;
};

/* find.c */
bool find_plugin(struct call *call, char **environment);
const char *value_of(char **environment, const char *name);

/* run.c */
bool run_plugin(const struct call *call, int deadline_ms, struct outcome *outcome);
bool copy_to(int from, int to);
bool write_all(int to, const char *bytes, size_t count);
long now_ms(void);
_Noreturn void execute_plugin(const struct call *call);
_Noreturn void end_like(const struct outcome *outcome);
_Noreturn void ask_again(const char *reason);

/* record.c: none of it may fail a call */
int open_state(void);
bool has_key(const struct call *call);
void record_attachment(int state, const struct call *call, const char *phase, const struct outcome *outcome);
void forget_earlier(int state, const struct call *call);
void note_released(int state, const struct call *call);
void unqueue(int state, const struct call *call);
bool has_queued(int state, const struct call *call);
bool has_completed(int state, const struct call *call);

/* brake.c */
void announce_add(int state, const struct call *call);
bool wait_for_turn(int state, const struct call *call);
void note_failing(int state, const struct call *call);
void note_working(int state, const struct call *call);

/* decide.c */
bool is_absorbed(const struct call *call, const struct outcome *outcome);
void start_replay(const struct call *call);
