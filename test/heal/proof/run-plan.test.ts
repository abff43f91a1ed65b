import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { until } from "../../../lab/poll.ts";
import { runPlan } from "../../../src/heal/pipeline.ts";
import { removalVerifier } from "../../../src/heal/proof/runtime-access.ts";
import { stormBrake } from "../../../src/heal/proof/storm-brake.ts";
import type { CniConfig, MultusConfig } from "../../../src/node/types/cni.ts";
import { sandboxId } from "../../../src/node/types/ids.ts";
import type { PlannedAction } from "../../../src/plan/plan.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import type { CallOptions } from "../../../src/runtime/grpc.ts";
import { criSandbox, type FakeNode, fakeFacts, fakeTools } from "../fake-node.ts";
import { type HealFixture, makeHealFixture, WHY } from "../heal-fixture.ts";

const IDS = Array.from({ length: 16 }, (_, index) => sandboxId(index.toString(16).repeat(64)));
const SECOND = 1000;
const HANG_MS = 30_000;

let fixture: HealFixture;

beforeEach(async () => {
  fixture = await makeHealFixture();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

afterEach(async () => {
  vi.useRealTimers();
  await fixture.remove();
});

function removal(id: (typeof IDS)[number]): PlannedAction {
  return {
    finding: {
      id: `dead-after-crash/${id}`,
      class: "dead-after-crash",
      severity: "warning",
      subject: { type: "sandbox", sandboxId: id },
      summary: "",
      evidence: [],
      blocks: [],
      cure: [],
      treatment: { automatic: true, reversible: false, steps: [] },
    },
    rank: "rest",
    steps: [{ kind: "remove-sandbox", sandboxId: id }],
    reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
    lane: id,
  };
}

function confWith(multus: MultusConfig | undefined): CniConfig {
  return {
    dir: "/etc/cni/net.d",
    binDirs: ["/opt/cni/bin"],
    file: "/etc/cni/net.d/00-multus.conf",
    plugins: [],
    ...(multus === undefined ? {} : { multus }),
  };
}

function multusConf({ thick }: { readonly thick: boolean }): MultusConfig {
  return { confFile: "/etc/cni/net.d/00-multus.conf", cniDir: "/var/lib/cni/multus", thick, binDir: "/opt/cni/bin" };
}

/** Removes 16 sandboxes, each with a network, from a runtime that answers no removal; returns the number of calls. */
async function unansweredRemovals(conf: CniConfig): Promise<number> {
  const giveUp = new AbortController();
  const calls: string[] = [];
  const cri = {
    podSandboxState: () => Promise.resolve(PodSandboxState.SANDBOX_NOTREADY),
    listSandboxStates: () => Promise.resolve(IDS.map((id) => ({ id, state: PodSandboxState.SANDBOX_NOTREADY }))),
    stopPodSandbox: () => Promise.resolve(),
    removePodSandbox: (id: string, { signal }: CallOptions) => {
      calls.push(id);
      return new Promise<void>((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new RuntimeError("cancelled", "RemovePodSandbox", "", "")));
      });
    },
  };
  const node: FakeNode = { cri };
  const interruption = { stop: new AbortController().signal, giveUp: giveUp.signal };
  const facts = { ...fakeFacts(node), resultFiles: () => Promise.resolve(["/var/lib/cni/results/cbr0-eth0"]) };
  const removeVerified = removalVerifier({ cri, containerd: undefined, queryMs: SECOND });
  const tools = fakeTools(fixture, { ...node, tools: { conf, facts, removeVerified, interruption } });
  let settled = 0;
  const running = runPlan({ actions: IDS.map(removal), leftAlone: [] }, tools, {
    concurrency: 4,
    brake: stormBrake(),
    onResult: () => {
      settled += 1;
    },
    onSlow: () => undefined,
  });
  // Sandboxes without a call have a result; the others hang.
  while (settled + calls.length < IDS.length || settled === 0) {
    await vi.advanceTimersByTimeAsync(SECOND);
    await new Promise((resolve) => setImmediate(resolve));
  }
  giveUp.abort();
  await running;
  return calls.length;
}

describe("a plan on a runtime that never answers a removal", () => {
  test("stops after two calls when all DELs go through one multus daemon", async () => {
    expect(await unansweredRemovals(confWith(multusConf({ thick: true })))).toBe(2);
  });

  test("stops after eight calls when each DEL is its own process", async () => {
    expect(await unansweredRemovals(confWith(multusConf({ thick: false })))).toBe(8);
    expect(await unansweredRemovals(confWith(undefined))).toBe(8);
  });
});

/** How many removals are at the runtime at a time, and how many sandboxes are proven meanwhile. */
async function removalsAtATime(concurrency: number) {
  const answers: (() => void)[] = [];
  const proven = new Set<string>();
  const sandboxes = IDS.map((id) => criSandbox(id));
  const facts = fakeFacts({ sandboxes });
  const cri = {
    podSandboxState: () => Promise.resolve(undefined),
    listSandboxStates: () => Promise.resolve([]),
    removePodSandbox: () => new Promise<void>((resolve) => answers.push(resolve)),
  };
  const tools = fakeTools(fixture, {
    cri,
    tools: {
      facts: { ...facts, sandbox: (id) => facts.sandbox((proven.add(id), id)) },
      removeVerified: removalVerifier({ cri, containerd: undefined, queryMs: SECOND }),
    },
  });
  const running = runPlan({ actions: IDS.map(removal), leftAlone: [] }, tools, {
    concurrency,
    brake: stormBrake(),
    onResult: () => undefined,
    onSlow: () => undefined,
  });
  await until("the removals are at the runtime", HANG_MS, () => answers.length === concurrency || undefined);
  await fixture.journal.begin({ ...WHY, action: { kind: "remove-sandbox", sandboxId: IDS[0] ?? "" } });
  const seen = { atTheRuntime: answers.length, proven: proven.size };
  let isOver = false;
  void running.then(() => (isOver = true));
  while (!isOver) {
    for (const answer of answers.splice(0)) answer();
    await vi.advanceTimersByTimeAsync(SECOND);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

describe("a plan on a healthy runtime", () => {
  test("prepares the next removals while as many as allowed are at the runtime", async () => {
    expect(await removalsAtATime(4)).toEqual({ atTheRuntime: 4, proven: 7 });
  });

  test("prepares nothing ahead with a concurrency of 1", async () => {
    expect(await removalsAtATime(1)).toEqual({ atTheRuntime: 1, proven: 1 });
  });
});
