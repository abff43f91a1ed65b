import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { POD_STEPS, restartDaemon } from "../../../src/heal/steps/pods.ts";
import { failed } from "../../../src/host/source.ts";
import type { CniConfig, MultusDaemon } from "../../../src/node/types/cni.ts";
import { containerId } from "../../../src/node/types/ids.ts";
import { ContainerState, PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf } from "../../support/snapshot-builder.ts";
import { criContainer, criSandbox, type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const STEP = {
  kind: "restart-daemon",
  socket: "/run/multus/multus.sock",
  containerId: containerId("c".repeat(64)),
  sandboxId: idOf("a"),
  pid: 4711,
  startedSecondsAfterBoot: 12.5,
} as const;

const PROCESS = {
  pid: STEP.pid,
  startedSecondsAfterBoot: STEP.startedSecondsAfterBoot,
  isStopped: false,
  containerId: STEP.containerId,
};
const SILENT: MultusDaemon = { socket: STEP.socket, state: "silent", process: PROCESS };
const ANSWERS: MultusDaemon = { ...SILENT, state: "answers" };

const READY = criSandbox(STEP.sandboxId, { state: PodSandboxState.SANDBOX_READY });
const RUNNING = criContainer(STEP.sandboxId, { state: ContainerState.CONTAINER_RUNNING });
const KUBELET = { kubelet: { pid: 1, startedSecondsAfterBoot: 1 } };

const HANG_GUARD_MS = 60_000;

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

/** The last probe's answer stays. */
async function restarted(probes: readonly (MultusDaemon | undefined)[], node: FakeNode = {}, containers = [RUNNING]) {
  const stopped: string[] = [];
  const pauses: number[] = [];
  let probed = 0;
  const tools = fakeTools(fixture, {
    sandboxes: [READY],
    processes: KUBELET,
    ...node,
    cri: {
      ...node.cri,
      listContainers: (filter) => {
        expect(filter).toEqual({ id: STEP.containerId });
        return Promise.resolve(containers);
      },
      stopContainer: (id) => {
        stopped.push(id);
        return Promise.resolve();
      },
    },
  });
  const probe = () => Promise.resolve(probes[Math.min(probed++, probes.length - 1)]);
  const sleep = (milliseconds: number) => Promise.resolve(pauses.push(milliseconds));
  const waits = { ...tools.waits, socketMs: probes.at(-1)?.state === "answers" ? HANG_GUARD_MS : 50 };
  const step = restartDaemon(STEP, FINDING, { ...tools, sleep, waits }, probe);
  return { ...(await journalOf(fixture, step)), stopped, probed, pauses };
}

describe("restart-daemon", () => {
  test("stops the container, and succeeds when the new daemon answers", async () => {
    const { result, stopped, history, probed, pauses } = await restarted([SILENT, SILENT, SILENT, ANSWERS]);
    expect([result.kind, stopped, history.length]).toEqual(["done", [STEP.containerId], 1]);
    // A pause between two probes, none before the first, and none after the answer.
    expect([probed, pauses]).toEqual([4, [1000, 1000]]);
  });

  test("waits for the new daemon to start", async () => {
    const { result, pauses } = await restarted([SILENT, SILENT, SILENT, undefined, SILENT, ANSWERS]);
    expect([result.kind, pauses]).toEqual(["done", [1000, 1000, 1000, 1000]]);
  });

  test("finds the container among others of the node", async () => {
    const others = [criContainer(idOf("b")), RUNNING, criContainer(STEP.sandboxId)];
    const probes = [SILENT, SILENT, SILENT, ANSWERS];
    const cri = { listPodSandbox: () => Promise.resolve([criSandbox(idOf("b")), READY, criSandbox(idOf("c"))]) };
    expect((await restarted(probes, { cri }, others)).result.kind).toBe("done");
  });

  test("refuses when only another sandbox is Ready", async () => {
    const other = criSandbox(idOf("b"), { state: PodSandboxState.SANDBOX_READY });
    const cri = { listPodSandbox: () => Promise.resolve([other]) };
    expect(await restarted([SILENT], { cri })).toMatchObject({
      result: { kind: "refused", code: "container-not-running" },
      stopped: [],
    });
  });

  test("requests the sandbox of the container from the runtime", async () => {
    const filters: unknown[] = [];
    const listPodSandbox = (filter: unknown) => {
      filters.push(filter);
      return Promise.resolve([READY]);
    };
    await restarted([SILENT, SILENT, SILENT, ANSWERS], { cri: { listPodSandbox } });
    expect(filters).toEqual([{ id: STEP.sandboxId }]);
  });

  test("treats a stopped process as hung, whatever the state of its socket", async () => {
    const halted: MultusDaemon = { ...SILENT, state: "unknown", process: { ...PROCESS, isStopped: true } };
    expect((await restarted([halted, halted, halted, ANSWERS])).result.kind).toBe("done");
  });

  test("fails when the daemon does not answer after the restart", async () => {
    expect((await restarted([SILENT])).result).toMatchObject({
      kind: "failed",
      code: "daemon-still-silent",
      reason: expect.stringMatching(/\b0\.05 ?s/),
    });
  });

  test.each([
    ["answers at the first probe", [ANSWERS]],
    ["answers at the last probe", [SILENT, SILENT, ANSWERS]],
    ["is gone", [undefined]],
    ["has no socket that can be judged", [{ socket: STEP.socket, state: "unknown" } satisfies MultusDaemon]],
  ])("touches nothing when the daemon %s", async (_, probes) => {
    expect(await restarted(probes)).toMatchObject({ result: { kind: "unneeded" }, stopped: [], history: [] });
  });

  test.each([
    ["another pid", { ...SILENT, process: { ...PROCESS, pid: 4712 } }],
    ["another process with the same pid", { ...SILENT, process: { ...PROCESS, startedSecondsAfterBoot: 12.51 } }],
    ["another container", { ...SILENT, process: { ...PROCESS, containerId: containerId("d".repeat(64)) } }],
    ["another socket", { ...SILENT, socket: "/tmp/multus.sock" }],
    ["no process that provably listens", { socket: SILENT.socket, state: "silent" }],
  ] satisfies readonly (readonly [string, MultusDaemon])[])("refuses %s, even at the last probe", async (_, other) => {
    for (const probes of [[other], [SILENT, SILENT, other]]) {
      const result = await restartDaemon(STEP, FINDING, fakeTools(fixture), () =>
        Promise.resolve(probes.length > 1 ? probes.shift() : probes[0]),
      );
      expect(result).toMatchObject({ kind: "refused", code: "daemon-not-proven" });
    }
  });

  test("refuses when /proc shows another pid namespace", async () => {
    const result = await restartDaemon(STEP, FINDING, fakeTools(fixture, { tools: { hostRoot: fixture.caches } }), () =>
      Promise.reject(new Error("unexpected probe")),
    );
    expect(result).toMatchObject({
      kind: "refused",
      code: "foreign-pid-namespace",
      reason: expect.stringMatching(/pid/),
    });
  });

  test("needs nothing when multus has no daemon", async () => {
    expect(await POD_STEPS["restart-daemon"](STEP, FINDING, fakeTools(fixture))).toEqual({ kind: "unneeded" });
  });

  test("probes the socket to see whether the daemon answers", async () => {
    const socket = join(fixture.caches, "multus.sock");
    const server = createServer().listen(socket);
    await once(server, "listening");
    const conf = { multus: { socket } } as unknown as CniConfig;
    try {
      const result = await restartDaemon({ ...STEP, socket }, FINDING, fakeTools(fixture, { tools: { conf } }));
      // It is silent, and no process is proven to hold it. Only a socket of root is probed.
      expect(result).toMatchObject(
        process.getuid?.() === 0 ? { kind: "refused", code: "daemon-not-proven" } : { kind: "unneeded" },
      );
    } finally {
      server.close();
    }
  });

  test.each<readonly [string, FakeNode["processes"]]>([
    ["no kubelet would restart the container", {}],
    ["the process table cannot be read", failed("no /proc")],
  ])("refuses when %s", async (_, processes) => {
    expect(await restarted([SILENT], processes === undefined ? {} : { processes })).toMatchObject({
      result: { kind: "refused", code: "no-kubelet" },
      stopped: [],
    });
  });

  test.each([
    ["is not listed", [], [READY]],
    ["has exited", [criContainer(STEP.sandboxId)], [READY]],
    ["belongs to another sandbox", [criContainer(idOf("b"), { state: ContainerState.CONTAINER_RUNNING })], [READY]],
    ["has another id", [{ ...RUNNING, id: "e".repeat(64) }], [READY]],
    ["is in a sandbox that is not Ready", [RUNNING], [criSandbox(STEP.sandboxId)]],
    ["is in a sandbox that is not listed", [RUNNING], []],
  ])("refuses a container that %s", async (_, containers, sandboxes) => {
    expect(await restarted([SILENT], { sandboxes }, containers)).toMatchObject({
      result: { kind: "refused", code: "container-not-running" },
      stopped: [],
      history: [],
    });
  });
});
