import { expect, test } from "vitest";
import { livenessOfStored } from "../../src/evidence/liveness.ts";
import { failed, read } from "../../src/host/source.ts";
import type { ProcessFacts } from "../../src/node/types/runtime.ts";
import type { StoredContainer } from "../../src/node/types/snapshot.ts";
import { idOf, shimOf } from "../support/snapshot-builder.ts";

const ID = idOf("a");
const CONTAINER = "c".repeat(64);

function records(sandboxId: string): readonly StoredContainer[] {
  return [
    { id: ID, kind: "sandbox", createdAt: undefined, labels: {} },
    { id: CONTAINER, kind: "container", createdAt: undefined, labels: {}, container: { name: "main", sandboxId } },
  ];
}

function processes(alive: Partial<ProcessFacts> = {}) {
  return read<ProcessFacts>({ plugins: [], shims: [], byContainer: new Map(), netnsInodes: new Set(), ...alive });
}

test("a stored sandbox without any process is dead; only processes are checked", () => {
  expect(livenessOfStored(ID, { records: records(ID) }, processes())).toEqual({
    state: "dead",
    checked: ["shim", "process"],
  });
});

test("a stored sandbox with a shim is alive", () => {
  expect(livenessOfStored(ID, { records: [] }, processes({ shims: [shimOf("a")] })).state).toBe("alive");
});

test("a stored sandbox with a process of one of its containers is alive", () => {
  const inCgroup = processes({ byContainer: new Map([[CONTAINER, [42]]]) });
  expect(livenessOfStored(ID, { records: records(ID) }, inCgroup).state).toBe("alive");
});

test("a process of another sandbox's container does not count", () => {
  const inCgroup = processes({ byContainer: new Map([[CONTAINER, [42]]]) });
  expect(livenessOfStored(ID, { records: records(idOf("b")) }, inCgroup).state).toBe("dead");
});

test("a stored sandbox is not proven dead without the process table", () => {
  expect(livenessOfStored(ID, { records: [] }, failed("no /proc"))).toMatchObject({
    state: "unproven",
    unread: ["shim", "process"],
  });
});

test("a record with undecodable metadata belongs to no sandbox", () => {
  const undecoded: StoredContainer = { id: CONTAINER, kind: "container", createdAt: undefined, labels: {} };
  const inCgroup = processes({ byContainer: new Map([[CONTAINER, [42]]]) });
  expect(livenessOfStored(ID, { records: [undecoded] }, inCgroup).state).toBe("dead");
});
