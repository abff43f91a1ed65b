import { describe, expect, test } from "vitest";
import { sortSandboxes } from "../../src/evidence/candidates.ts";
import type { SignOfLife } from "../../src/evidence/liveness.ts";
import { signInWords } from "../../src/evidence/liveness-words.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { failed } from "../../src/host/source.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { containerdLine, klog } from "../support/log-lines.ts";
import {
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  LOST,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  shimOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

function sorted(parts: NodeParts, sources: Partial<Snapshot> = {}) {
  return sortSandboxes(viewOf(snapshotOf(parts, sources), PATIENT));
}

const dead = sandboxOf("a");

const TEARDOWN = { code: "network-teardown-in-flight", text: "its network is being taken down right now" };

function alive(sign: SignOfLife): object {
  return { code: "alive", text: `not dead: ${signInWords(sign)}` };
}

describe("candidates", () => {
  test("include a NotReady sandbox without a sign of life, with the proof", () => {
    const { candidates, kept } = sorted({ sandboxes: [dead], containers: [containerOf("a", { exit: LOST })] });

    expect(kept).toEqual([]);
    expect(candidates).toMatchObject([{ sandbox: { id: idOf("a") } }]);
    expect(candidates[0]?.evidence.map(({ source }) => source)).toEqual(["cri", "processes", "containerd"]);
  });

  test("name in their proof the calls that still work on them", () => {
    const DEL_FAILED = { plugins: [pluginFor("a", "DEL", 5, 501), pluginFor("a", "DEL", 6, 502)] };
    const { candidates } = sorted({ ...DEL_FAILED, sandboxes: [dead], logLines: [delErrorLine("a", "no")] });

    expect(candidates[0]?.evidence[1]?.fact).toBe(
      "no shim and no process carries its id, except for the CNI DEL in pid 501 (/opt/cni/bin/bridge), the CNI DEL in pid 502 (/opt/cni/bin/bridge)",
    );
  });

  test("never include a Ready one, without a reason", () => {
    expect(sorted({ sandboxes: [sandboxOf("a", { state: "ready" })] })).toEqual({ candidates: [], kept: [] });
  });

  test.each<readonly [string, NodeParts, object]>([
    [
      "a container of it runs",
      { containers: [containerOf("a", { state: "running" })] },
      alive({ sign: "container", name: "main" }),
    ],
    [
      "its task lives",
      { records: [recordOf("a")], tasks: [{ containerId: idOf("a"), pid: 9, status: "running" }] },
      alive({ sign: "task", status: "running", pid: 9 }),
    ],
    ["its shim lives", { shims: [shimOf("a")] }, alive({ sign: "shim", pid: 700 })],
    ["a process is in its cgroup", { processesOf: { [idOf("a")]: [42] } }, alive({ sign: "process", pid: 42 })],
    ["a plugin works on it", { plugins: [pluginFor("a", "DEL", 5)] }, TEARDOWN],
  ])("do not include one when %s", (_, parts, reason) => {
    const { candidates, kept } = sorted({ ...parts, sandboxes: [dead] });

    expect(candidates).toEqual([]);
    expect(kept).toMatchObject([{ sandboxId: dead.id, reason }]);
  });

  const RELEASED = containerdLine(30, "info", `TearDown network for sandbox "${idOf("a")}" successfully`);
  const CREATION_FAILED = klog(
    30,
    `"RunPodSandbox from runtime service failed" err=${JSON.stringify(
      `rpc error: code = Unknown desc = failed to setup network for sandbox "${idOf("a")}": no`,
    )}`,
  );
  const atWork = { sandboxes: [dead], plugins: [pluginFor("a", "DEL", 5)] };

  test.each<readonly [string, NodeParts]>([
    ["a log contains that its removal failed before", { logLines: [delErrorLine("a", "no")] }],
    ["DEL cannot read its result", { results: [resultOf("a", "empty")], runtimeVersion: "1.6.20" }],
    ["multus cannot read its cache", { multus: [scratchOf("a", "corrupt")] }],
  ])("include one that a plugin works on again, when %s", (_, parts) => {
    expect(sorted({ ...atWork, ...parts })).toMatchObject({ candidates: [{ sandbox: { id: dead.id } }], kept: [] });
  });

  test.each<readonly [string, NodeParts]>([
    ["the log is about another sandbox", { logLines: [delErrorLine("b", "no")] }],
    ["the runtime reports that its network is released", { logLines: [RELEASED] }],
    ["the runtime reports that its creation failed", { logLines: [CREATION_FAILED] }],
    ["its files are in order", { results: [resultOf("a")], multus: [scratchOf("a")], runtimeVersion: "1.6.20" }],
    ["its runtime does not need the result", { results: [resultOf("a", "empty")], runtimeVersion: "2.3.4" }],
  ])("do not include one that a plugin works on, when %s", (_, parts) => {
    const { candidates, kept } = sorted({ ...atWork, ...parts });
    expect([candidates, kept]).toMatchObject([[], [{ reason: TEARDOWN }]]);
  });

  test("do not include one that is being created, without a report of its removal", () => {
    const parts = { plugins: [pluginFor("a", "ADD", 5)], logLines: [delErrorLine("a", "no")] };
    const { candidates, kept } = sorted({ ...atWork, ...parts });

    expect([candidates, kept]).toMatchObject([
      [],
      [{ reason: { code: "network-setup-in-flight", text: "its network is still being set up" } }],
    ]);
  });

  test.each(["processes", "containerd"] as const)("are empty while the %s could not be read", (source) => {
    const { candidates, kept } = sorted({ sandboxes: [dead] }, { [source]: failed("no") });

    expect(candidates).toEqual([]);
    expect(kept).toMatchObject([
      { reason: { code: "not-proven-dead", text: expect.stringMatching(/^not proven dead: ./) } },
    ]);
  });

  test.each(["labels", "annotations"] as const)("do not include one that %s opt out", (where) => {
    const optedOut = sandboxOf("a", { [where]: { "unghost.dev/ignore": "true" } });

    expect(sorted({ sandboxes: [optedOut] })).toMatchObject({
      candidates: [],
      kept: [{ reason: { code: "opted-out", text: "opted out by unghost.dev/ignore" } }],
    });
  });

  test("a stopped task is not a sign of life", () => {
    const { candidates } = sorted({
      sandboxes: [dead],
      records: [recordOf("a")],
      tasks: [{ containerId: idOf("a"), pid: 9, status: "stopped" }],
    });

    expect(candidates).toHaveLength(1);
  });

  test("a process in the cgroup of an exited container is a sign of life, as in heal", () => {
    const container = containerOf("a", { exit: FINISHED });
    const parts = { sandboxes: [dead], containers: [container], processesOf: { [container.id]: [43] } };

    expect(sorted(parts)).toMatchObject({ candidates: [], kept: [{ reason: alive({ sign: "process", pid: 43 }) }] });
  });
});
