import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { type SimulatedRuntime, startSimulated } from "../../lab/simulated/runtime.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import { openContainerd } from "../../src/runtime/containerd.ts";
import { type CriClient, openCri } from "../../src/runtime/cri.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandbox, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { listAllContainers, listAllSandboxes, type PodHint } from "../../src/runtime/lists.ts";
import { tempDir } from "../support/temp-dir.ts";

const CALL = { timeoutMs: 60_000 };
const NAMESPACE_LABEL = "io.kubernetes.pod.namespace";
const UID_LABEL = "io.kubernetes.pod.uid";
const MIB = 1024 * 1024;

const cleanUps: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function simulated(): Promise<{ readonly runtime: SimulatedRuntime; readonly cri: CriClient }> {
  const dir = tempDir();
  const runtime = await startSimulated({ socket: dir.join("cri.sock") });
  const cri = openCri(runtime.socket);
  cleanUps.push(
    () => cri.close(),
    () => runtime.close(),
    () => dir.remove(),
  );
  return { runtime, cri };
}

function noHint(): Promise<readonly PodHint[]> {
  throw new Error("the hint was asked without need");
}

describe("large answers", () => {
  test("of more than 10 MB arrive in one message", async () => {
    const { runtime, cri } = await simulated();
    const blob = "x".repeat(4096);
    runtime.addSandboxes(3000, { annotations: { blob } });

    const { items, coverage } = await listAllSandboxes(cri, noHint, CALL);

    expect(coverage).toBe("whole");
    expect(items).toHaveLength(3000);
    expect(items.every((sandbox) => sandbox.annotations["blob"] === blob)).toBe(true);
  });

  test("above unghost's limit are read in parts", async () => {
    const { runtime, cri } = await simulated();
    runtime.script({ maxMessageBytes: 100 * MIB });
    runtime.addSandboxes(1200, { state: "ready", annotations: { blob: "x".repeat(16_384) } });
    runtime.addSandboxes(1200, { state: "dead", annotations: { blob: "x".repeat(16_384) } });

    expect(await overflowOf(cri.listPodSandbox(undefined, CALL))).toContain("larger than");
    const { items, coverage } = await listAllSandboxes(cri, noHint, CALL);

    expect(coverage).toBe("whole");
    expect(new Set(items.map((sandbox) => sandbox.id)).size).toBe(2400);
  });

  test("keep Go's zero time as a bigint", async () => {
    const { runtime, cri } = await simulated();
    runtime.addSandboxes(1, { state: "half-made" });

    const { items } = await listAllSandboxes(cri, noHint, CALL);

    expect(items[0]?.createdAt).toBe(ZERO_TIME);
    expect(ZERO_TIME).toBe(-6795364578871345152n);
  });
});

describe("lists that overflow one message", () => {
  test("are read by state, namespace and pod, with containerd's records as the hint", async () => {
    const { runtime, cri } = await simulated();
    const ids = [
      ...runtime.addSandboxes(3, { state: "ready", namespaces: ["a"] }),
      ...runtime.addSandboxes(40, { state: "dead", namespaces: ["crowded"], namePrefix: "c" }),
      ...runtime.addSandboxes(4, { state: "dead", namespaces: ["a", "b"], namePrefix: "d" }),
    ];
    const containerd = openContainerd(runtime.socket);
    cleanUps.push(() => containerd.close());
    runtime.script({ maxMessageBytes: 3000 });

    const sandboxes = await listAllSandboxes(cri, recordedPods, CALL);
    const found = sandboxes.items.map((sandbox) => sandbox.id);
    const containers = await listAllContainers(cri, () => Promise.resolve(found), CALL);

    expect(sandboxes.coverage).toBe("hinted");
    expect(found.sort()).toEqual([...ids].sort());
    expect(containers.coverage).toBe("hinted");
    expect(containers.items.map((container) => container.podSandboxId).sort()).toEqual([...ids].sort());

    async function recordedPods(): Promise<readonly PodHint[]> {
      const records = await containerd.listContainers(CALL);
      return records.map(({ labels }) => ({ namespace: labels[NAMESPACE_LABEL] ?? "", uid: labels[UID_LABEL] ?? "" }));
    }
  });

  test("that cannot be split fail, with the runtime's text", async () => {
    const { runtime, cri } = await simulated();
    const ids = runtime.addSandboxes(2, { state: "dead" });
    const labels = (await cri.listPodSandbox({ id: ids[0] ?? "" }, CALL))[0]?.labels ?? {};
    const pod = { namespace: "default", uid: labels[UID_LABEL] ?? "" };
    runtime.script({ maxMessageBytes: 10 });

    const hintless = listAllSandboxes(cri, async () => [], CALL);
    const onePod = listAllSandboxes(cri, async () => [pod], CALL);
    const containers = listAllContainers(cri, () => Promise.resolve([]), CALL);

    await expect(hintless).rejects.toMatchObject({
      kind: "overflow",
      text: expect.stringContaining("larger than max"),
      next: expect.stringContaining("nothing to name the pods"),
    });
    await expect(onePod).rejects.toMatchObject({ kind: "overflow", next: expect.stringContaining(pod.uid) });
    await expect(containers).rejects.toMatchObject({ kind: "overflow", next: expect.stringContaining("no sandbox") });
  });

  test("return every other failure unchanged", async () => {
    const refusal = new RuntimeError("refused", "ListPodSandbox", "no", "");
    const cri = { listPodSandbox: () => Promise.reject(refusal) };

    await expect(listAllSandboxes(cri, noHint, CALL)).rejects.toBe(refusal);
  });

  test("never miss a sandbox that changes its state meanwhile", async () => {
    const moving = fakeSandbox("moving", "a", "uid-1", PodSandboxState.SANDBOX_READY);
    const cri = fakeCri([moving, fakeSandbox("other", "a", "uid-2", PodSandboxState.SANDBOX_NOTREADY)], 1, () => {
      moving.state = PodSandboxState.SANDBOX_NOTREADY;
    });

    const { items } = await listAllSandboxes(cri, async () => [hintOf("a", "uid-1"), hintOf("a", "uid-2")], CALL);

    expect(items.map(({ id, state }) => [id, state])).toEqual([
      ["moving", PodSandboxState.SANDBOX_NOTREADY],
      ["other", PodSandboxState.SANDBOX_NOTREADY],
    ]);
  });

  test("are complete and without duplicates, with few calls in flight", async () => {
    const pods = fc.array(fc.record({ namespace: fc.nat(5), uid: fc.nat(60), ready: fc.boolean() }), {
      maxLength: 120,
    });
    await fc.assert(
      fc.asyncProperty(pods, fc.integer({ min: 1, max: 40 }), async (spec, limit) => {
        const sandboxes = spec.map(({ namespace, uid, ready }, index) => {
          const state = ready ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY;
          return fakeSandbox(`id-${index}`, `ns-${namespace}`, `uid-${namespace}-${uid}`, state);
        });
        const cri = fakeCri(sandboxes, limit);
        const hint = async () => sandboxes.map(({ labels }) => hintOf(labels[NAMESPACE_LABEL], labels[UID_LABEL]));

        const listing = await listAllSandboxes(cri, hint, CALL).catch((error: unknown) => error);

        expect(cri.mostAtOnce()).toBeLessThanOrEqual(8);
        if (listing instanceof RuntimeError) {
          expect(largestPod(sandboxes)).toBeGreaterThan(limit);
          return;
        }
        const { items } = listing as Awaited<ReturnType<typeof listAllSandboxes>>;
        expect(items.map((item) => item.id).sort()).toEqual(sandboxes.map((sandbox) => sandbox.id).sort());
      }),
    );
  });
});

function hintOf(namespace = "", uid = ""): PodHint {
  return { namespace, uid };
}

function fakeSandbox(id: string, namespace: string, uid: string, state: PodSandboxState): PodSandbox {
  return PodSandbox.fromPartial({ id, state, labels: { [NAMESPACE_LABEL]: namespace, [UID_LABEL]: uid } });
}

/** A runtime that answers with at most `limit` sandboxes. */
function fakeCri(sandboxes: readonly PodSandbox[], limit: number, afterAnswer = (): void => {}) {
  let underWay = 0;
  let most = 0;
  return {
    mostAtOnce: () => most,
    listPodSandbox: async (filter: Parameters<CriClient["listPodSandbox"]>[0]) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
      const wanted = Object.entries(filter?.labelSelector ?? {});
      const found = sandboxes
        .filter((sandbox) => filter?.state === undefined || sandbox.state === filter.state.state)
        .filter((sandbox) => wanted.every(([key, value]) => sandbox.labels[key] === value));
      if (found.length > limit) throw new RuntimeError("overflow", "ListPodSandbox", "larger than max", "");
      const answer = found.map((sandbox) => ({ ...sandbox }));
      if (filter?.state?.state === PodSandboxState.SANDBOX_READY) afterAnswer();
      return answer;
    },
  };
}

function largestPod(sandboxes: readonly PodSandbox[]): number {
  const pods = Map.groupBy(
    sandboxes,
    ({ labels, state }) => `${labels[NAMESPACE_LABEL]}/${labels[UID_LABEL]}/${state}`,
  );
  return Math.max(0, ...[...pods.values()].map((group) => group.length));
}

async function overflowOf(call: Promise<unknown>): Promise<string> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (error instanceof RuntimeError && error.kind === "overflow") return error.text;
  throw new Error("the call did not overflow", { cause: error });
}
