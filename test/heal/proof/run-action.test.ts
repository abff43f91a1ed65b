import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Finding } from "../../../src/evidence/finding.ts";
import type { Step } from "../../../src/evidence/step.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { removalVerifier } from "../../../src/heal/proof/runtime-access.ts";
import { stormBrake } from "../../../src/heal/proof/storm-brake.ts";
import { semaphore, turns } from "../../../src/heal/proof/turns.ts";
import { type ActionResult, runAction } from "../../../src/heal/run-action.ts";
import { sandboxId } from "../../../src/node/types/ids.ts";
import type { PlannedAction } from "../../../src/plan/plan.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import type { CallOptions } from "../../../src/runtime/grpc.ts";
import { fakeTools } from "../fake-node.ts";
import { type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = sandboxId("a".repeat(64));
const XTABLES = "Another app is currently holding the xtables lock";
const DAEMON_DOWN = "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused";

let fixture: HealFixture;

beforeEach(async () => {
  fixture = await makeHealFixture();
});

afterEach(async () => {
  await fixture.remove();
});

/** The runtime's answers, call by call; undefined is success. */
type Answers = readonly (string | (() => string) | undefined)[];

interface NodeOptions {
  readonly isContainerd: boolean;
  readonly stops: Answers;
  readonly removals: Answers;
}

/** A node with one dead sandbox, and the answers of containerd to its removals. */
function node(...removals: Answers) {
  return nodeWith({ isContainerd: true, stops: [], removals });
}

/** The same with CRI-O, and its answers to the stops before a successful removal. */
function crioNode(...stops: Answers) {
  return nodeWith({ isContainerd: false, stops, removals: [] });
}

function nodeWith({ isContainerd, stops, removals }: NodeOptions) {
  const stop = new AbortController();
  const giveUp = new AbortController();
  const hangs = Promise.withResolvers<void>();
  const brake = stormBrake();
  const pauses: number[] = [];
  const calls: string[] = [];
  const deadlines: number[] = [];
  let isListed = true;
  const interruption = { stop: stop.signal, giveUp: giveUp.signal };
  const slots = semaphore({ slots: 4, patienceMs: 60_000, mostAside: 4 });
  function answer(call: string, answers: Answers, { signal, timeoutMs }: CallOptions): Promise<void> {
    const next = answers[calls.filter((one) => one === call).length];
    calls.push(call);
    deadlines.push(timeoutMs);
    const text = typeof next === "function" ? next() : next;
    if (text === undefined) return Promise.resolve();
    if (text !== "hang") return Promise.reject(new RuntimeError("refused", call, text, ""));
    return new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new RuntimeError("cancelled", call, "", "")));
      hangs.resolve();
    });
  }
  const cri = {
    podSandboxState: () => Promise.resolve(isListed ? PodSandboxState.SANDBOX_NOTREADY : undefined),
    listSandboxStates: () => Promise.resolve(isListed ? [{ id: ID, state: PodSandboxState.SANDBOX_NOTREADY }] : []),
    stopPodSandbox: (_id: string, options: CallOptions) => answer("StopPodSandbox", stops, options),
    removePodSandbox: async (_id: string, options: CallOptions) => {
      await answer("RemovePodSandbox", removals, options);
      isListed = false;
    },
  };
  const tools = fakeTools(fixture, {
    ...(isContainerd ? {} : { containerdFacts: undefined }),
    cri,
    tools: {
      removeVerified: removalVerifier({ cri, containerd: undefined, queryMs: 1000 }),
      interruption,
      turn: turns({ slots, brake, probes: { patienceMs: 60_000, mostUnanswered: 8 }, interruption }),
      sleep: (milliseconds: number) => Promise.resolve(pauses.push(milliseconds)),
    },
  });
  return {
    stop,
    giveUpOnceItHangs: async () => {
      await hangs.promise;
      stop.abort();
      giveUp.abort();
    },
    pauses,
    calls,
    deadlines,
    removals: () => calls.filter((call) => call === "RemovePodSandbox").length,
    act: (action = ACTION): Promise<ActionResult> => runAction(action, { tools, brake }),
  };
}

const REMOVE: Step = { kind: "remove-sandbox", sandboxId: ID };
const FINDING: Finding = {
  id: `dead-after-crash/${ID}`,
  class: "dead-after-crash",
  severity: "warning",
  subject: { type: "sandbox", sandboxId: ID },
  summary: "",
  evidence: [],
  blocks: [],
  cure: [],
  treatment: { automatic: true, reversible: false, steps: [] },
};
const ACTION: PlannedAction = {
  finding: FINDING,
  rank: "rest",
  steps: [REMOVE],
  reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
  lane: ID,
};

async function journaledOutcomes(): Promise<readonly string[]> {
  await fixture.journal.close();
  const { records } = await readHistory(fixture.stateDir.journal);
  return records.map(({ state, outcome }) => `${state} ${outcome}`);
}

describe("runAction", () => {
  test("reports healed and journals it when all steps succeed", async () => {
    const { act, calls } = node(undefined);
    expect(await act()).toMatchObject({ outcome: "healed", journalId: expect.any(String) });
    expect(calls).toEqual(["RemovePodSandbox"]);
    expect(await journaledOutcomes()).toEqual(["done healed"]);
  });

  test("a removed sandbox is healed, whatever a step after its removal is refused for", async () => {
    const { path } = await fixture.put("of-no-sandbox", "{}");
    const refused = { kind: "quarantine-file", path, health: "orphaned" } as const;
    const { act } = node(undefined);

    const result = await act({ ...ACTION, steps: [REMOVE, refused] });

    expect(result).toMatchObject({ outcome: "healed", code: "names-no-sandbox", undone: [refused] });
    expect(result.reason).toBe(`${path} names no sandbox`);
  });

  test("retries with growing delays while a lock is held", async () => {
    const { act, pauses } = node(XTABLES, XTABLES, undefined);
    expect((await act()).outcome).toBe("healed");
    expect(pauses).toEqual([500, 2000]);
  });

  test("stops retrying when the lock is held for too long", async () => {
    const { act, removals } = node(XTABLES, XTABLES, XTABLES, XTABLES);
    expect(await act()).toMatchObject({ outcome: "failed", reason: expect.stringContaining("xtables") });
    expect(removals()).toBe(3);
  });

  test("does not retry for any other reason", async () => {
    const { act, removals, pauses } = node(DAEMON_DOWN, undefined);
    expect((await act()).outcome).toBe("failed");
    expect([removals(), pauses]).toEqual([1, []]);
  });

  test("skips the action without a runtime call when the storm brake is on", async () => {
    const { act, removals } = node(DAEMON_DOWN, DAEMON_DOWN, DAEMON_DOWN);
    for (let times = 0; times < 3; times++) await act();
    expect(await act()).toMatchObject({ outcome: "skipped", reason: expect.stringContaining("kube-ovn-daemon") });
    expect(removals()).toBe(3);
  });

  test("skips the action when the run was interrupted before", async () => {
    const { act, stop, removals } = node(undefined);
    stop.abort();
    expect(await act()).toMatchObject({ outcome: "skipped", reason: expect.stringContaining("interrupted") });
    expect(removals()).toBe(0);
    expect(await journaledOutcomes()).toEqual([]);
  });

  test("ends a hung action when it is aborted, and closes its journal entry", async () => {
    const { act, giveUpOnceItHangs } = node("hang");
    const result = act();
    await giveUpOnceItHangs();
    expect(await result).toMatchObject({ outcome: "failed", reason: expect.stringContaining("given up") });
    expect(await journaledOutcomes()).toEqual(["done failed"]);
  });
});

describe("removal on a runtime other than containerd", () => {
  const FABRIC_DOWN = "failed to destroy network for pod sandbox k8s_web-0: the fabric is down";

  test("stops the sandbox first, in one journal entry, with the full timeout for each call", async () => {
    const { act, calls, deadlines } = crioNode();
    expect((await act()).outcome).toBe("healed");
    expect(calls).toEqual(["StopPodSandbox", "RemovePodSandbox"]);
    expect(Math.min(...deadlines)).toBeGreaterThanOrEqual(130_000);
    expect(await journaledOutcomes()).toEqual(["done healed"]);
  });

  test("continues when the second stop succeeds", async () => {
    const { act, calls } = crioNode(FABRIC_DOWN, undefined);
    expect((await act()).outcome).toBe("healed");
    expect(calls).toEqual(["StopPodSandbox", "StopPodSandbox", "RemovePodSandbox"]);
  });

  test("removes nothing when the stop fails twice, and reports the error of the stop", async () => {
    const { act, calls } = crioNode(FABRIC_DOWN, FABRIC_DOWN, undefined);
    expect(await act()).toMatchObject({ outcome: "failed", reason: `StopPodSandbox: ${FABRIC_DOWN}` });
    expect(calls).toEqual(["StopPodSandbox", "StopPodSandbox"]);
    expect(await journaledOutcomes()).toEqual(["done failed"]);
  });

  test("does not retry the stop for a cause outside the sandbox, and trips the storm brake like a removal", async () => {
    const { act, calls } = crioNode(DAEMON_DOWN, DAEMON_DOWN, DAEMON_DOWN);
    for (let times = 0; times < 3; times++) await act();
    expect(await act()).toMatchObject({ outcome: "skipped", reason: expect.stringContaining("kube-ovn-daemon") });
    expect(calls).toEqual(["StopPodSandbox", "StopPodSandbox", "StopPodSandbox"]);
  });

  test("waits for a held lock before it stops again", async () => {
    const { act, calls, pauses } = crioNode(XTABLES, undefined);
    expect((await act()).outcome).toBe("healed");
    expect(calls).toEqual(["StopPodSandbox", "StopPodSandbox", "RemovePodSandbox"]);
    expect(pauses).toEqual([500]);
  });

  test("ends without a removal when its stop is aborted", async () => {
    const { act, calls, giveUpOnceItHangs } = crioNode("hang");
    const result = act();
    await giveUpOnceItHangs();
    expect(await result).toMatchObject({ outcome: "failed", reason: expect.stringContaining("given up") });
    expect(calls).toEqual(["StopPodSandbox"]);
    expect(await journaledOutcomes()).toEqual(["done failed"]);
  });

  test("does not retry the stop when the run is stopping", async () => {
    const { act, calls, stop } = crioNode(() => {
      stop.abort();
      return FABRIC_DOWN;
    });
    expect((await act()).outcome).toBe("failed");
    expect(calls).toEqual(["StopPodSandbox"]);
  });
});
