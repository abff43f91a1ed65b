import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { recordStore } from "../../../src/heal/proof/record-store.ts";
import { SANDBOX_STEPS } from "../../../src/heal/steps/sandboxes.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { fakeContainerd, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function deleted(store: "containers" | "sandboxes", answer: () => Promise<void> = () => Promise.resolve()) {
  const asked: string[] = [];
  const ask = (from: string) => (id: string) => {
    asked.push(`${from} ${id}`);
    return answer();
  };
  const containerd = fakeContainerd({ deleteContainer: ask("containers"), deleteSandbox: ask("sandboxes") });
  const opened = { kind: "open", containerd, copy: "/state/meta.db.copy", stop: () => Promise.resolve() } as const;
  const records = { open: () => Promise.resolve(opened), copy: () => opened.copy, close: () => Promise.resolve() };
  const step = { kind: "delete-record", record: "x", store } as const;
  return {
    ...(await journalOf(
      fixture,
      SANDBOX_STEPS["delete-record"](step, FINDING, fakeTools(fixture, { tools: { records } })),
    )),
    asked,
  };
}

test.each(["containers", "sandboxes"] as const)(
  "deletes a record of the %s, and journals where its copy is",
  async (store) => {
    const { result, history, asked } = await deleted(store);
    expect([result.kind, asked]).toEqual(["done", [`${store} x`]]);
    expect(history).toMatchObject([
      { action: { kind: "delete-record", record: "x", copy: "/state/meta.db.copy" }, outcome: "healed" },
    ]);
  },
);

test("fails when containerd refuses", async () => {
  const { result, history } = await deleted("containers", () =>
    Promise.reject(new RuntimeError("refused", "Containers/Delete", "no", "")),
  );
  expect(result.kind).toBe("failed");
  expect(history).toMatchObject([{ outcome: "failed" }]);
});

test("fails without a runtime over the records, and journals nothing", async () => {
  const step = { kind: "delete-record", record: "x", store: "containers" } as const;
  const { result, history } = await journalOf(
    fixture,
    SANDBOX_STEPS["delete-record"](step, FINDING, fakeTools(fixture)),
  );
  expect([result.kind, history]).toEqual(["failed", []]);
});

test("the database is copied before containerd is started over it, once until it is closed", async () => {
  const path = join(fixture.caches, "meta.db");
  writeFileSync(path, "records");
  const started: (string | undefined)[] = [];
  let stopped = 0;
  const store = recordStore({
    path,
    start: () => {
      started.push(store.copy());
      const stop = async () => {
        stopped++;
      };
      return Promise.resolve({ kind: "borrowed", runtime: { endpoint: "unix:///nowhere", stop } });
    },
  });

  await store.open(fixture);
  await store.open(fixture);
  await store.close();
  await store.close();

  expect([started.length, stopped]).toEqual([1, 1]);
  expect(readFileSync(started[0] ?? "", "utf8")).toBe("records");
});

test("containerd is not started over a database that could not be copied", async () => {
  const store = recordStore({
    path: join(fixture.caches, "missing"),
    start: () => Promise.reject(new Error("must not be called")),
  });

  expect(await store.open(fixture)).toMatchObject({ kind: "failed", reason: expect.stringContaining("ENOENT") });
  expect(existsSync(join(fixture.caches, "missing"))).toBe(false);
});
