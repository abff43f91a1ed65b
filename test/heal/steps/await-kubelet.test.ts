import { afterEach, beforeEach, expect, test } from "vitest";
import { SANDBOX_STEPS } from "../../../src/heal/steps/sandboxes.ts";
import { type PodSandbox, PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf } from "../../support/snapshot-builder.ts";
import { criSandbox, fakeTools } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const POD = { name: "web", namespace: "default", uid: "uid", attempt: 3 };
const NOT_READY = PodSandboxState.SANDBOX_NOTREADY;
const SANDBOX = criSandbox(ID, { metadata: POD });

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

function successor(attempt: number, state: PodSandboxState = PodSandboxState.SANDBOX_READY): PodSandbox {
  return criSandbox(idOf("b"), { metadata: { ...POD, attempt }, state });
}

/** The runtime's lists, call by call; the last list stays. */
async function awaited(lists: readonly (readonly PodSandbox[])[], { kubeletMs = 200, stopped = false } = {}) {
  const filters: unknown[] = [];
  const stop = new AbortController();
  if (stopped) stop.abort();
  const tools = fakeTools(fixture, {
    cri: {
      listPodSandbox: (filter) => {
        filters.push(filter);
        return Promise.resolve(lists[Math.min(filters.length, lists.length) - 1] ?? []);
      },
    },
    tools: { interruption: { stop: stop.signal, giveUp: stop.signal } },
  });
  const sleep = () => new Promise((resolve) => setTimeout(resolve, 20));
  const result = await SANDBOX_STEPS["await-kubelet"]({ kind: "await-kubelet", sandboxId: ID }, FINDING, {
    ...tools,
    sleep,
    waits: { ...tools.waits, kubeletMs },
  });
  return { result, filters };
}

test("heals without a wait when the sandbox is gone already", async () => {
  const { result, filters } = await awaited([[]]);
  expect([result, filters]).toEqual([{ kind: "healed" }, [{ id: ID }]]);
});

test.each<readonly [string, readonly (readonly PodSandbox[])[]]>([
  ["kubelet removes it", [[SANDBOX], [SANDBOX], []]],
  ["kubelet removes it and leaves another one that is not Ready", [[SANDBOX], [SANDBOX], [successor(4, NOT_READY)]]],
  ["a newer attempt of its pod becomes Ready", [[SANDBOX], [SANDBOX], [SANDBOX, successor(4)]]],
])("heals when %s", async (_, lists) => {
  const { result, filters } = await awaited(lists, { kubeletMs: 10_000 });
  expect(result).toEqual({ kind: "healed" });
  expect(filters).toHaveLength(3);
  expect(filters[1]).toEqual({ labelSelector: { "io.kubernetes.pod.uid": "uid" } });
});

test.each<readonly [string, readonly PodSandbox[]]>([
  ["nothing changes", [SANDBOX]],
  ["the newer attempt is not Ready", [SANDBOX, successor(4, NOT_READY)]],
  ["one without metadata is Ready", [SANDBOX, criSandbox(idOf("b"), { state: PodSandboxState.SANDBOX_READY })]],
  ["another sandbox of the same attempt is Ready", [SANDBOX, successor(3)]],
  ["an older attempt is Ready", [SANDBOX, successor(2)]],
])("continues with the next step while %s", async (_, list) => {
  const { result, filters } = await awaited([list]);
  expect(result).toEqual({ kind: "done" });
  expect(filters.length).toBeGreaterThan(1);
});

test("does not wait for a sandbox without metadata, because its pod is unknown", async () => {
  expect((await awaited([[criSandbox(ID)]])).result).toEqual({ kind: "healed" });
});

test("does not wait when the run is stopping", async () => {
  const { result, filters } = await awaited([[SANDBOX]], { kubeletMs: 10_000, stopped: true });
  expect([result, filters.length]).toEqual([{ kind: "done" }, 1]);
});
