import type { Liveness, Reference, Sign, SignOfLife } from "./liveness.ts";

/** Why a sandbox is not dead, or not proven dead. */
export function livenessInWords(liveness: Liveness): string {
  switch (liveness.state) {
    case "alive":
      return signInWords(liveness.found[0]);
    case "unproven":
      return UNREAD[liveness.unread[0]];
    case "dead":
      return "no sign of life was found";
  }
}

export function signInWords(found: SignOfLife): string {
  switch (found.sign) {
    case "ready":
      return "it is Ready";
    case "container":
      return `its container ${found.name} is running`;
    case "task":
      return `its task is ${found.status} (pid ${found.pid})`;
    case "shim":
      return `its shim is alive (pid ${found.pid})`;
    case "process":
      return `process ${found.pid} runs in its cgroup`;
  }
}

const UNREAD: Readonly<Record<Sign, string>> = {
  ready: "the runtime did not answer, so it may still live",
  container: "the runtime did not answer, so a container of it may still run",
  task: "containerd did not report the state of its tasks, so one may still live",
  shim: "the process table could not be read, so a shim or pause may still live",
  process: "the process table could not be read, so a process of it may still live",
};

export const REFERENCES: Readonly<Record<Reference, string>> = {
  "runtime-list": "the runtime lists it",
  "containerd-record": "containerd has a record of it",
  "sandbox-store": "containerd's sandbox store has it",
  "processes-unread": "the process table cannot be read, so something may",
  shim: "a shim carries it",
  plugin: "a network plugin works on it",
  "other-runtime": "it is alive in another runtime on this machine",
  process: "a process runs in its cgroup",
};
