import { rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Finding } from "../../../src/evidence/finding.ts";
import { INTERRUPTED } from "../../../src/heal/proof/fresh-facts.ts";
import type { RemovalVerifier } from "../../../src/heal/proof/runtime-access.ts";
import type { Turn } from "../../../src/heal/proof/turns.ts";
import { removeSandbox, SANDBOX_STEPS } from "../../../src/heal/steps/sandboxes.ts";
import type { StepTools } from "../../../src/heal/steps/step-result.ts";
import { failed } from "../../../src/host/source.ts";
import type { SandboxId } from "../../../src/node/types/ids.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { ContainerStatusResponse, PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { withSlowSync } from "../../support/failing-fs.ts";
import { idOf, shimOf } from "../../support/snapshot-builder.ts";
import { criContainer, criSandbox, type FakeNode, fakeFacts, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const DAEMON_DOWN = "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused";
const DEAD = { sandboxes: [criSandbox(ID)] };

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

const STEPS = [
  [
    "stop",
    (sandboxId: SandboxId, ...rest: readonly [Finding, StepTools]) =>
      SANDBOX_STEPS["stop-sandbox"]({ kind: "stop-sandbox", sandboxId }, ...rest),
  ],
  ["remove", removeSandbox],
] as const;

/** Gets its turn at once, or never. */
function toolsFor(node: FakeNode, held = false) {
  const calls: string[] = [];
  const called = (name: string) => (id: string) => {
    calls.push(`${name} ${id}`);
    return Promise.resolve();
  };
  const turn: Turn = async (call) => {
    if (held) return INTERRUPTED;
    await call();
    return undefined;
  };
  const removeVerified: RemovalVerifier = async (_id, remove) => {
    const objection = await remove();
    return objection === undefined ? "gone" : { held: objection };
  };
  const cri = { stopPodSandbox: called("stop"), removePodSandbox: called("remove"), ...node.cri };
  return { calls, tools: fakeTools(fixture, { ...node, cri, tools: { turn, removeVerified, ...node.tools } }) };
}

test.each(STEPS)("%s handles a dead sandbox, and journals it", async (name, step) => {
  const { calls, tools } = toolsFor(DEAD);

  const { result, history } = await journalOf(fixture, step(ID, FINDING, tools));

  expect([result.kind, calls]).toEqual(["done", [`${name} ${ID}`]]);
  expect(history).toMatchObject([{ action: { kind: `${name}-sandbox`, sandboxId: ID }, outcome: "healed" }]);
});

const ALIVE: readonly (readonly [string, FakeNode])[] = [
  ["is Ready", { sandboxes: [criSandbox(ID, { state: PodSandboxState.SANDBOX_READY })] }],
  ["has a shim", { ...DEAD, processes: { shims: [shimOf("a")] } }],
  ["is not proven dead", { ...DEAD, processes: failed("no /proc") }],
];

test.each(STEPS.flatMap(([name, step]) => ALIVE.map(([why, node]) => [name, why, step, node] as const)))(
  "%s refuses when the sandbox %s",
  async (_name, _why, step, node) => {
    const { calls, tools } = toolsFor(node);

    const { result, history } = await journalOf(fixture, step(ID, FINDING, tools));

    expect([result, history, calls]).toMatchObject([{ kind: "refused", code: "not-dead" }, [], []]);
  },
);

test.each(STEPS)("%s needs nothing when the sandbox is gone", async (_, step) => {
  const { calls, tools } = toolsFor({});
  expect([await step(ID, FINDING, tools), calls]).toEqual([{ kind: "unneeded" }, []]);
});

test.each(STEPS)("%s waits when it does not get its turn", async (_, step) => {
  const { calls, tools } = toolsFor(DEAD, true);

  const { result, history } = await journalOf(fixture, step(ID, FINDING, tools));

  expect([result, calls]).toMatchObject([{ kind: "held", code: "interrupted" }, []]);
  expect(history).toMatchObject([{ outcome: "skipped" }]);
});

test("remove refuses when the logs of the containers cannot be saved", async () => {
  const container = criContainer(ID);
  const { path } = await fixture.put("0.log", "last words");
  const logPaths = new Map([[container.id, path]]);
  const { calls, tools } = toolsFor({ ...DEAD, containers: [container], tools: { logPaths } });
  await fixture.journal.close();

  const result = await removeSandbox(ID, FINDING, tools);

  expect([result, calls]).toMatchObject([{ kind: "refused", code: "logs-not-saved" }, []]);
});

test("remove asks the runtime only once the saved logs and their directories are on the disk", async () => {
  const container = criContainer(ID);
  const { path } = await fixture.put("0.log", "last words");
  const order: string[] = [];
  const { tools } = toolsFor({
    ...DEAD,
    containers: [container],
    cri: { removePodSandbox: () => Promise.resolve(void order.push("remove")) },
    tools: { logPaths: new Map([[container.id, path]]) },
  });

  const result = await withSlowSync(
    (synced) => order.push(synced),
    () => removeSandbox(ID, FINDING, tools),
  );

  const entry = result.kind === "done" ? (result.logsSavedTo ?? "") : "";
  const directory = join(entry, "logs", basename(dirname(path)));
  const durable = [join(directory, "0.log"), directory, dirname(directory), entry, dirname(entry)];
  expect(order.slice(0, -1).toSorted()).toEqual(durable.toSorted());
  expect(order.at(-1)).toBe("remove");
});

describe.each(STEPS)("%s: while the call waits for its turn", (name, step) => {
  /** The node changes before the turn comes. */
  async function changed(later: FakeNode) {
    let node: FakeNode = { ...DEAD, containers: [criContainer(ID)] };
    const turn: Turn = async (call) => {
      node = later;
      await call();
      return undefined;
    };
    const { calls, tools } = toolsFor({ ...DEAD, tools: { turn, logPaths: new Map([[criContainer(ID).id, ""]]) } });
    const facts = {
      ...tools.facts,
      sandbox: (id: string) => fakeFacts(node).sandbox(id),
      containersOf: (id: string) => fakeFacts(node).containersOf(id),
      processes: () => fakeFacts(node).processes(),
    };
    const cri = { ...tools.cri, podSandboxState: () => Promise.resolve(undefined) };
    return { ...(await journalOf(fixture, step(ID, FINDING, { ...tools, facts, cri }))), calls };
  }

  test.each(ALIVE)("the sandbox %s, and nothing is called", async (_why, node) => {
    const { result, history, calls } = await changed(node);

    expect([result, calls]).toMatchObject([{ kind: "refused", code: "not-dead" }, []]);
    expect(history).toMatchObject([{ outcome: "refused" }]);
  });

  test("a container is created: it is not removed, for its log is not saved", async () => {
    const fresh = criContainer(ID, { id: idOf("d") });

    const { result, calls } = await changed({ ...DEAD, containers: [criContainer(ID), fresh] });

    const reason = `Container ${fresh.id} was created after the logs were saved. Heal again.`;
    const removed = [
      { kind: "refused", code: "logs-not-saved", reason: expect.stringContaining(reason) as unknown },
      [],
    ];
    expect([result, calls]).toMatchObject(name === "remove" ? removed : [{ kind: "done" }, [`stop ${ID}`]]);
  });

  test("the call is harmless when another process removed the sandbox", async () => {
    expect((await changed({})).result.kind).toBe("done");
  });
});

test("remove requests log paths that the scan did not read", async () => {
  const container = criContainer(ID);
  const { path } = await fixture.put("0.log", "last words");
  const status = ContainerStatusResponse.fromPartial({ status: { logPath: path } });
  const cri = { containerStatus: () => Promise.resolve(status) };
  const { tools } = toolsFor({ ...DEAD, containers: [container], cri });

  const { result, history } = await journalOf(fixture, removeSandbox(ID, FINDING, tools));

  expect(result).toMatchObject({ kind: "done", logsSavedTo: join(fixture.stateDir.quarantine, history[0]?.id ?? "") });
  expect(history.map(({ action }) => action.kind)).toEqual(["save-logs", "remove-sandbox"]);
});

test.each<readonly [string, Parameters<typeof ContainerStatusResponse.fromPartial>[0]]>([
  ["has no log", { status: { logPath: "" } }],
  ["has no status", {}],
])("remove saves nothing of a container that %s", async (_, status) => {
  const cri = { containerStatus: () => Promise.resolve(ContainerStatusResponse.fromPartial(status)) };
  const { tools } = toolsFor({ ...DEAD, containers: [criContainer(ID)], cri });

  const { result, history } = await journalOf(fixture, removeSandbox(ID, FINDING, tools));

  expect([result.kind, "logsSavedTo" in result]).toEqual(["done", false]);
  expect(history.map(({ action }) => action.kind)).toEqual(["remove-sandbox"]);
});

test.each<readonly [string, string, RemovalVerifier]>([
  ["when the log is gone", "done", () => Promise.resolve("gone")],
  ["when the removal fails", "failed", () => Promise.resolve("listed")],
])("remove reports no directory of saved logs %s", async (_, kind, removeVerified) => {
  const container = criContainer(ID);
  const { path } = await fixture.put("0.log", "last words");
  if (kind === "done") rmSync(path);
  const tools = { logPaths: new Map([[container.id, path]]), removeVerified };

  const result = await removeSandbox(ID, FINDING, toolsFor({ ...DEAD, containers: [container], tools }).tools);

  expect([result.kind, "logsSavedTo" in result]).toEqual([kind, false]);
});

test.each(STEPS)("%s decides by the cached results of the sandbox whether it calls plugins", async (_, step) => {
  const kinds: unknown[] = [];
  const turn: Turn = async (call, kind) => {
    kinds.push(kind);
    await call();
    return undefined;
  };
  for (const files of [["/var/lib/cni/results/x"], []]) {
    const { tools } = toolsFor({ ...DEAD, tools: { turn } });
    const facts = { ...tools.facts, resultFiles: () => Promise.resolve(files) };
    expect((await step(ID, FINDING, { ...tools, facts })).kind).toBe("done");
  }
  expect(kinds).toEqual(["calls-plugins", "no-plugins"]);
});

describe("remove on CRI-O, which tears the network down last", () => {
  const refusal = (text: string) => new RuntimeError("refused", "StopPodSandbox", text, "");

  /** The first stop is answered with this error, or not at all without one. */
  async function removedAfter(refusedBy?: Error, stopped = false) {
    const calls: string[] = [];
    const stop = stopped ? AbortSignal.abort() : new AbortController().signal;
    const { tools } = toolsFor({
      ...DEAD,
      containerdFacts: undefined,
      cri: {
        stopPodSandbox: () => {
          calls.push("stop");
          return refusedBy !== undefined && calls.length === 1 ? Promise.reject(refusedBy) : Promise.resolve();
        },
        removePodSandbox: () => {
          calls.push("remove");
          return Promise.resolve();
        },
      },
      tools: { interruption: { stop, giveUp: new AbortController().signal } },
    });
    return { result: await removeSandbox(ID, FINDING, tools), calls };
  }

  test("stops the sandbox first", async () => {
    expect(await removedAfter()).toMatchObject({ result: { kind: "done" }, calls: ["stop", "remove"] });
  });

  test("retries the stop when a plugin failed the first DEL", async () => {
    const { result, calls } = await removedAfter(refusal("the plugin failed"));
    expect([result.kind, calls]).toEqual(["done", ["stop", "stop", "remove"]]);
  });

  test.each<readonly [string, Error, boolean]>([
    ["there is no answer", new RuntimeError("deadline", "StopPodSandbox", "", ""), false],
    ["a lock is held", refusal("iptables: another app is currently holding the xtables lock"), false],
    ["the cause is outside the sandbox", refusal(`plugin type="multus" failed (delete): ${DAEMON_DOWN}`), false],
    ["the run is stopping", refusal("the plugin failed"), true],
  ])("removes nothing, and does not retry the stop, when %s", async (_, error, stopped) => {
    const { result, calls } = await removedAfter(error, stopped);
    expect([result, calls]).toMatchObject([{ kind: "failed", code: "runtime-error" }, ["stop"]]);
  });

  test("rethrows an internal error", async () => {
    await expect(removedAfter(new TypeError("a mistake"))).rejects.toThrow("a mistake");
  });
});

test.each(["listed", "recorded"] as const)("remove fails when the sandbox is still %s afterwards", async (left) => {
  const removeVerified: RemovalVerifier = async (_id, remove) => {
    await remove();
    return left;
  };
  const { tools } = toolsFor({ ...DEAD, tools: { removeVerified } });

  expect(await removeSandbox(ID, FINDING, tools)).toMatchObject({ kind: "failed", code: "sandbox-still-there" });
});
