import { describe, expect, test } from "vitest";
import { livenessOf, type NodeSigns, nodeSigns, type SandboxSigns } from "../../src/evidence/liveness.ts";
import { livenessInWords } from "../../src/evidence/liveness-words.ts";
import { absent, failed, read } from "../../src/host/source.ts";
import type { Task } from "../../src/node/types/runtime.ts";
import { idOf, shimOf } from "../support/snapshot-builder.ts";

const ID = idOf("a");
const CONTAINER = "c".repeat(64);
const OTHER = idOf("b");

interface Signs {
  readonly isReady?: boolean;
  readonly isRunning?: boolean;
  readonly tasks?: readonly Task[];
  readonly shims?: readonly string[];
  readonly processesOf?: Readonly<Record<string, readonly number[]>>;
}

function sandboxWith({ isReady = false, isRunning = false }: Signs = {}): SandboxSigns {
  return { id: ID, cri: read({ isReady, containers: [{ id: CONTAINER, name: "main", isRunning }] }) };
}

function nodeWith({ tasks = [], shims = [], processesOf = {} }: Signs = {}): NodeSigns {
  const found = shims.map((id) => ({ ...shimOf("a"), id }));
  return nodeSigns(read(tasks), read({ shims: found, byContainer: new Map(Object.entries(processesOf)) }));
}

function liveness(signs: Signs) {
  return livenessOf(sandboxWith(signs), nodeWith(signs));
}

const ALL = ["ready", "container", "task", "shim", "process"];

test("a sandbox is dead when every sign of life was checked and none was found", () => {
  expect(liveness({})).toEqual({ state: "dead", checked: ALL });
});

describe("one sign of life is enough for a sandbox to be alive", () => {
  const task = { containerId: ID, pid: 9, status: "running" } as const;

  test.each<readonly [string, Signs, object, string]>([
    ["it is Ready", { isReady: true }, { sign: "ready" }, "it is Ready"],
    ["a container runs", { isRunning: true }, { sign: "container", name: "main" }, "its container main is running"],
    [
      "it has a live task",
      { tasks: [task] },
      { sign: "task", status: "running", pid: 9 },
      "its task is running (pid 9)",
    ],
    [
      "a container of it has a live task",
      { tasks: [{ ...task, containerId: CONTAINER }] },
      { sign: "task", status: "running", pid: 9 },
      "its task is running (pid 9)",
    ],
    ["it has a shim", { shims: [ID] }, { sign: "shim", pid: 700 }, "its shim is alive (pid 700)"],
    [
      "a container of it has a shim of its own",
      { shims: [CONTAINER] },
      { sign: "shim", pid: 700 },
      "its shim is alive (pid 700)",
    ],
    [
      "a process is in its cgroup",
      { processesOf: { [ID]: [42, 43] } },
      { sign: "process", pid: 42 },
      "process 42 runs in its cgroup",
    ],
    [
      "a process is in the cgroup of a container of it",
      { processesOf: { [CONTAINER]: [42] } },
      { sign: "process", pid: 42 },
      "process 42 runs in its cgroup",
    ],
  ])("%s", (_, signs, found, words) => {
    const result = liveness(signs);
    expect(result).toEqual({ state: "alive", checked: ALL, found: [found], unread: [] });
    expect(livenessInWords(result)).toBe(words);
  });
});

test("all found signs are listed, even when others could not be read", () => {
  const cri = sandboxWith({ isReady: true, isRunning: true });
  expect(livenessOf(cri, { tasks: failed("no answer"), processes: failed("no /proc") })).toEqual({
    state: "alive",
    checked: ALL,
    found: [{ sign: "ready" }, { sign: "container", name: "main" }],
    unread: ["task", "shim", "process"],
  });
});

test.each<readonly [Task["status"], string]>([
  ["created", "alive"],
  ["running", "alive"],
  ["paused", "alive"],
  ["pausing", "alive"],
  ["stopped", "dead"],
  ["unknown", "unproven"],
  ["unanswered", "unproven"],
])("a sandbox whose task is %s is %s", (status, state) => {
  expect(liveness({ tasks: [{ containerId: ID, pid: 9, status }] }).state).toBe(state);
});

test("a live task of a container counts although the sandbox's own task is stopped", () => {
  const tasks = [
    { containerId: ID, pid: 8, status: "stopped" },
    { containerId: CONTAINER, pid: 9, status: "running" },
  ] as const;
  expect(liveness({ tasks }).state).toBe("alive");
});

test("signs of life of another sandbox do not count", () => {
  const tasks = [{ containerId: OTHER, pid: 9, status: "running" }] as const;
  expect(liveness({ tasks, shims: [OTHER], processesOf: { [OTHER]: [42] } }).state).toBe("dead");
});

describe('a sign that could not be read makes the result "not proven dead"', () => {
  const unread = failed<never>("could not be read");

  test.each<readonly [string, SandboxSigns, NodeSigns, readonly string[], string]>([
    [
      "the runtime",
      { id: ID, cri: unread },
      nodeWith(),
      ["ready", "container"],
      "the runtime did not answer, so it may still live",
    ],
    [
      "the tasks",
      sandboxWith(),
      { ...nodeWith(), tasks: unread },
      ["task"],
      "containerd did not report the state of its tasks, so one may still live",
    ],
    [
      "the state of its own task",
      sandboxWith(),
      nodeWith({ tasks: [{ containerId: ID, pid: 9, status: "unanswered" }] }),
      ["task"],
      "containerd did not report the state of its tasks, so one may still live",
    ],
    [
      "the process table",
      sandboxWith(),
      { ...nodeWith(), processes: unread },
      ["shim", "process"],
      "the process table could not be read, so a shim or pause may still live",
    ],
    [
      "processes that could not be read",
      sandboxWith(),
      { ...nodeWith(), processes: absent("not asked") },
      ["shim", "process"],
      "the process table could not be read, so a shim or pause may still live",
    ],
  ])("%s", (_, sandbox, node, signs, words) => {
    const result = livenessOf(sandbox, node);
    expect(result).toEqual({ state: "unproven", checked: ALL, unread: signs });
    expect(livenessInWords(result)).toBe(words);
  });
});

test("tasks are not read on a runtime without tasks", () => {
  const node = { ...nodeWith(), tasks: absent<never>("CRI-O has none") };
  expect(livenessOf(sandboxWith(), node)).toEqual({
    state: "dead",
    checked: ["ready", "container", "shim", "process"],
  });
});
