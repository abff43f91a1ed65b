import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Finding, reason } from "../../../src/evidence/finding.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { journaled, reasonFor, refused, type StepResult, stepFailed } from "../../../src/heal/steps/step-result.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { idOf } from "../../support/snapshot-builder.ts";
import { FINDING, type HealFixture, makeHealFixture, STOP } from "../heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function taken(change: () => Promise<StepResult>) {
  const result = await journaled(fixture, FINDING, STOP, change);
  await fixture.journal.close();
  return { result, history: (await readHistory(fixture.stateDir.journal)).records };
}

describe("the journal records how a change ended", () => {
  test.each<readonly [StepResult, object]>([
    [{ kind: "done" }, { outcome: "healed" }],
    [
      { kind: "done", detail: "by host-local" },
      { outcome: "healed", detail: "by host-local" },
    ],
    [{ kind: "healed" }, { outcome: "healed" }],
    [{ kind: "unneeded" }, { outcome: "skipped" }],
    [
      { kind: "held", code: "interrupted", reason: "why" },
      { outcome: "skipped", detail: "why" },
    ],
    [
      { kind: "refused", code: "sandbox-ready", reason: "why" },
      { outcome: "refused", detail: "why" },
    ],
    [
      { kind: "failed", code: "pod-still-there", reason: "why" },
      { outcome: "failed", detail: "why" },
    ],
  ])("%j", async (ended, expected) => {
    const { result, history } = await taken(() => Promise.resolve(ended));

    const [entry] = history;
    expect(entry).toMatchObject({
      action: STOP,
      finding: FINDING.id,
      class: FINDING.class,
      state: "done",
      ...expected,
    });
    expect(entry?.detail).toBe("detail" in expected ? expected.detail : undefined);
    const isNamed = ended.kind !== "healed" && ended.kind !== "unneeded";
    expect(result).toEqual({ ...ended, ...(isNamed && { journalId: entry?.id }) });
  });

  test("an error of the runtime is a failure, with its text for the storm brake", async () => {
    const { result, history } = await taken(() => {
      throw new RuntimeError("refused", "StopPodSandbox", "the plugin failed", "");
    });

    expect(result).toMatchObject({ kind: "failed", code: "runtime-error", text: "the plugin failed" });
    expect(history).toMatchObject([{ outcome: "failed", detail: expect.stringContaining("the plugin failed") }]);
  });

  test("an internal error leaves the entry open for the next run", async () => {
    await expect(taken(() => Promise.reject(new TypeError("a mistake")))).rejects.toThrow("a mistake");
    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([{ state: "open" }]);
  });
});

const NO_KUBELET = reason("no-kubelet", "why");
const STILL_THERE = reason("pod-still-there", "why");

test("a refusal contains the id of its journal entry, if any", () => {
  const id = fixture.newId();
  expect(refused(NO_KUBELET, id)).toEqual({ kind: "refused", code: "no-kubelet", reason: "why", journalId: id });
  expect(refused(NO_KUBELET)).not.toHaveProperty("journalId");
});

test("a failure contains the runtime's text only when the runtime returned one", () => {
  expect(stepFailed(STILL_THERE, "the plugin failed")).toHaveProperty("text", "the plugin failed");
  expect(stepFailed(STILL_THERE)).not.toHaveProperty("text");
});

test("nothing is changed when the journal cannot be written", async () => {
  await fixture.journal.close();
  let isChanged = false;

  const result = await journaled(fixture, FINDING, STOP, () => {
    isChanged = true;
    return Promise.resolve({ kind: "done" });
  });

  expect([result, isChanged]).toMatchObject([{ kind: "refused", code: "journal-refused" }, false]);
});

test("the journal contains the pod of a sandbox", () => {
  const pod = { namespace: "default", name: "web-0", uid: "u1" };
  const subject = { type: "sandbox", sandboxId: idOf("a"), pod } as unknown as Finding["subject"];
  expect(reasonFor({ ...FINDING, subject })).toEqual({
    finding: FINDING.id,
    class: FINDING.class,
    evidence: FINDING.evidence,
    subject,
  });
  expect(reasonFor(FINDING).subject).toEqual({ type: "node" });
});
