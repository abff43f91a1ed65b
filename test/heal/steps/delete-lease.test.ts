import { afterEach, beforeEach, expect, test } from "vitest";
import { SANDBOX_STEPS } from "../../../src/heal/steps/sandboxes.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { idOf, recordOf } from "../../support/snapshot-builder.ts";
import { type FakeNode, fakeContainerd, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function deleted(node: FakeNode = {}, answer: () => Promise<void> = () => Promise.resolve()) {
  const asked: string[] = [];
  const containerd = fakeContainerd({
    deleteLease: (id) => {
      asked.push(id);
      return answer();
    },
  });
  const tools = fakeTools(fixture, { tools: { containerd }, ...node });
  return {
    ...(await journalOf(fixture, SANDBOX_STEPS["delete-lease"]({ kind: "delete-lease", leaseId: ID }, FINDING, tools))),
    asked,
  };
}

test("deletes a lease without a reference, and journals it", async () => {
  const { result, history, asked } = await deleted();
  expect([result.kind, asked]).toEqual(["done", [ID]]);
  expect(history).toMatchObject([{ action: { kind: "delete-lease", lease: ID }, outcome: "healed" }]);
});

test("keeps a lease whose sandbox has a record", async () => {
  const { result, history, asked } = await deleted({ containerdFacts: { records: [recordOf("a")] } });
  expect([result, history, asked]).toMatchObject([{ kind: "refused", code: "still-referenced" }, [], []]);
});

test("does nothing on another runtime, which has no leases", async () => {
  expect((await deleted({ tools: { containerd: undefined } })).result).toEqual({ kind: "unneeded" });
});

test.each([
  ["not-found", "done"],
  ["refused", "failed"],
] as const)("maps the runtime's answer %s to %s", async (kind, outcome) => {
  const answer = () => Promise.reject(new RuntimeError(kind, "Leases/Delete", "no", ""));
  expect((await deleted({}, answer)).result.kind).toBe(outcome);
});
