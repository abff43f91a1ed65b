import { afterEach, beforeEach, expect, test } from "vitest";
import { SANDBOX_STEPS } from "../../../src/heal/steps/sandboxes.ts";
import { containerId } from "../../../src/node/types/ids.ts";
import { ContainerState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf } from "../../support/snapshot-builder.ts";
import { criContainer, criSandbox, type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const SANDBOX = idOf("a");
const ID = containerId("c".repeat(64));

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function removed(node: FakeNode = {}, left: readonly string[] = []) {
  const asked: string[] = [];
  const tools = fakeTools(fixture, {
    containers: [criContainer(SANDBOX)],
    ...node,
    cri: {
      containerStatus: () => Promise.resolve({ status: undefined, info: {} }),
      removeContainer: (id) => {
        asked.push(id);
        return Promise.resolve();
      },
      listContainers: () => Promise.resolve(left.map((id) => criContainer(SANDBOX, { id }))),
    },
  });
  const step = { kind: "remove-container", containerId: ID, sandboxId: SANDBOX } as const;
  return { ...(await journalOf(fixture, SANDBOX_STEPS["remove-container"](step, FINDING, tools))), asked };
}

test("removes a dead container without a sandbox, and journals it", async () => {
  const { result, history, asked } = await removed();
  expect([result.kind, asked]).toEqual(["done", [ID]]);
  expect(history).toMatchObject([{ action: { kind: "remove-container", containerId: ID }, outcome: "healed" }]);
});

test.each<readonly [string, FakeNode, string]>([
  ["its sandbox is listed by now", { sandboxes: [criSandbox(SANDBOX)] }, "sandbox-listed"],
  ["it runs", { containers: [criContainer(SANDBOX, { state: ContainerState.CONTAINER_RUNNING })] }, "not-dead"],
  [
    "another container of that sandbox runs",
    {
      containers: [criContainer(SANDBOX), criContainer(SANDBOX, { id: "d", state: ContainerState.CONTAINER_RUNNING })],
    },
    "not-dead",
  ],
  ["a process runs in its cgroup", { processes: { byContainer: new Map([[ID, [7]]]) } }, "not-dead"],
  ["a shim carries the id of its sandbox", { processes: { byContainer: new Map([[SANDBOX, [7]]]) } }, "not-dead"],
])("refuses if %s", async (_, node, code) => {
  const { result, history, asked } = await removed(node);
  expect([result, history, asked]).toMatchObject([{ kind: "refused", code }, [], []]);
});

test("does nothing if it is gone", async () => {
  expect((await removed({ containers: [] })).result).toEqual({ kind: "unneeded" });
});

test("fails if the runtime still lists it", async () => {
  expect((await removed({}, [ID])).result).toMatchObject({ kind: "failed", code: "container-still-there" });
});
