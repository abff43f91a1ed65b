import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULT_WAITS } from "../../../src/heal/proof/fresh-facts.ts";
import { freeCniLock } from "../../../src/heal/steps/processes.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { PodSandboxState, StatusResponse } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf, pluginFor } from "../../support/snapshot-builder.ts";
import { criSandbox, type FakeNode, fakeFacts, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const HOLDER = { pid: 2 ** 22 - 1, startedSecondsAfterBoot: 1, sandboxId: idOf("a") };
const SILENT = new RuntimeError("deadline", "Status", "no answer", "");

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

/** Status is not answered before this many calls. */
async function freed(silentFor: number, node: FakeNode = {}) {
  let asked = 0;
  const status = () => {
    asked += 1;
    return asked > silentFor ? Promise.resolve(StatusResponse.fromPartial({})) : Promise.reject(SILENT);
  };
  const tools = fakeTools(fixture, { ...node, cri: { status, ...node.cri } });
  const waits = { ...tools.waits, queryMs: 50, termMs: 50, ...node.tools?.waits };
  const step = { kind: "free-cni-lock", holders: [HOLDER] } as const;
  return { ...(await journalOf(fixture, freeCniLock(step, FINDING, { ...tools, waits }))), asked };
}

const HELD = { plugins: [{ ...pluginFor("a", "ADD", 600), ...HOLDER }] };

test("ends no process when the runtime answers Status again", async () => {
  const { result, history } = await freed(0, { processes: HELD });
  expect([result, history]).toEqual([{ kind: "unneeded" }, []]);
});

test("needs nothing when the holder is gone", async () => {
  const { result, history, asked } = await freed(1);
  expect([history, asked]).toEqual([[], 2]);
  expect(result).toMatchObject({ kind: "done", journalId: undefined, effect: { code: "node-not-asked" } });
});

test("retries Status until it is answered", async () => {
  expect(await freed(3, { tools: { waits: { ...DEFAULT_WAITS, queryMs: 30_000 } } })).toMatchObject({
    result: { kind: "done" },
    asked: 4,
  });
});

test("does not wait for the rollback of the holder's sandbox, because it needs the lock", async () => {
  let reads = 0;
  const processes = () => (reads++ === 0 ? HELD : {});
  const facts = {
    ...fakeFacts({ processes }),
    containerd: () => Promise.reject(new Error("unexpected read of the records")),
  };
  expect((await freed(1, { tools: { facts } })).result.kind).toBe("done");
});

test("does not end a holder whose sandbox became Ready, and reports the lock as held", async () => {
  const sandboxes = [criSandbox(HOLDER.sandboxId, { state: PodSandboxState.SANDBOX_READY })];
  const { result, history } = await freed(Number.POSITIVE_INFINITY, { sandboxes, processes: HELD });
  expect([result, history]).toMatchObject([
    { kind: "failed", code: "status-unanswered", reason: expect.stringContaining("Ready") },
    [],
  ]);
});

test("advises a restart of the runtime when no holder is left", async () => {
  expect((await freed(Number.POSITIVE_INFINITY)).result).toMatchObject({
    kind: "failed",
    code: "status-unanswered",
    reason: expect.stringContaining("no plugin process is left"),
  });
});

test("ends the holders and journals it", async () => {
  let reads = 0;
  const processes = () => (reads++ === 0 ? HELD : {});
  const { result, history } = await freed(1, { processes });
  expect(history).toMatchObject([{ action: { kind: "end-process", pid: HOLDER.pid }, outcome: "healed" }]);
  expect(result).toMatchObject({ kind: "done", journalId: history[0]?.id, effect: { code: "node-not-asked" } });
});

test("ends no holder when the run is stopping", async () => {
  const stop = AbortSignal.abort();
  const { result, history } = await freed(Number.POSITIVE_INFINITY, {
    processes: HELD,
    tools: { interruption: { stop, giveUp: stop } },
  });
  expect([result, history]).toMatchObject([{ kind: "failed", reason: expect.stringContaining("interrupted") }, []]);
});

test("rethrows an error that is not an answer of the runtime", async () => {
  const broken = { cri: { status: () => Promise.reject(new TypeError("a mistake")) } };
  await expect(freed(0, broken)).rejects.toThrow("a mistake");
});
