import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { multusMarker } from "../../../src/heal/steps/multus-marker.ts";
import type { StepResult } from "../../../src/heal/steps/step-result.ts";
import { failed } from "../../../src/host/source.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { MULTUS_MARKER } from "../../../src/snapshot/multus-cache.ts";
import { idOf, MULTUS, shimOf, snapshotOf, THICK_MULTUS } from "../../support/snapshot-builder.ts";
import { criSandbox, type FakeNode, fakeTools } from "../fake-node.ts";
import { FINDING, makeWorkshop, type Workshop } from "../workshop.ts";

const ID = idOf("a");
const DEAD = { sandboxes: [criSandbox(ID)] };

let shop: Workshop;
let dir: string;
let marker: string;

beforeEach(async () => {
  shop = await makeWorkshop();
  dir = join(shop.caches, "multus");
  marker = join(dir, ID);
  mkdirSync(dir);
  installMultus("4");
});
afterEach(() => shop.remove());

function installMultus(major: string | undefined): void {
  const bin = join(shop.caches, "bin");
  mkdirSync(bin, { recursive: true });
  const module = major === undefined ? "some other program" : `k8snetworkplumbingwg/multus-cni.v${major}`;
  writeFileSync(join(bin, "multus"), `\0${module}/pkg\0`);
}

function confOf(conf: object) {
  const source = snapshotOf({ conf }).cni.conf;
  if (source.status !== "read") throw new Error("no configuration");
  return source.value;
}

function mark(node: FakeNode = DEAD, conf: object = MULTUS): Promise<StepResult> {
  const tools = { conf: confOf(conf), binDirs: [join(shop.caches, "bin")], ...node.tools };
  return multusMarker({ kind: "multus-marker", sandboxId: ID, dir }, FINDING, fakeTools(shop, { ...node, tools }));
}

async function history() {
  await shop.journal.close();
  return (await readHistory(shop.stateDir.journal)).records;
}

test("is written for a dead sandbox of thin multus, and the journal knows before", async () => {
  const result = await mark();

  expect([result.kind, readFileSync(marker, "utf8")]).toEqual(["done", MULTUS_MARKER]);
  expect(await history()).toMatchObject([{ action: { kind: "write-marker", path: marker }, state: "open" }]);
});

describe("no marker is written", () => {
  test.each<readonly [string, FakeNode]>([
    ["is Ready", { sandboxes: [criSandbox(ID, { state: PodSandboxState.SANDBOX_READY })] }],
    ["has a shim", { ...DEAD, processes: { shims: [shimOf("a")] } }],
    ["is not proven dead", { ...DEAD, processes: failed("no /proc") }],
  ])("when its sandbox %s", async (_, node) => {
    expect(await mark(node)).toMatchObject({ kind: "refused", code: "not-dead" });
    expect([existsSync(marker), await history()]).toEqual([false, []]);
  });

  test("when its sandbox is gone", async () => {
    expect([await mark({}), existsSync(marker)]).toEqual([{ kind: "unneeded" }, false]);
  });

  test.each<readonly [string, object, string | undefined]>([
    ["there is no multus", {}, "4"],
    ["its DEL always succeeds", THICK_MULTUS, "4"],
    ["it is too old to read one", MULTUS, "3"],
    ["its version is not known", MULTUS, undefined],
  ])("when %s", async (_, conf, major) => {
    installMultus(major);
    expect([await mark(DEAD, conf), existsSync(marker)]).toEqual([{ kind: "unneeded" }, false]);
  });

  test("over a cache that multus has written", async () => {
    writeFileSync(marker, "[{}]");
    expect(await mark()).toEqual({ kind: "unneeded" });
    expect([readFileSync(marker, "utf8"), await history()]).toMatchObject(["[{}]", [{ outcome: "skipped" }]]);
  });

  test("where it cannot be written", async () => {
    dir = join(shop.caches, "missing");
    expect(await mark()).toMatchObject({ kind: "refused", code: "marker-not-written" });
    expect(await history()).toMatchObject([{ outcome: "refused" }]);
  });

  test("when the journal takes no entry", async () => {
    await shop.journal.close();
    expect([await mark(), existsSync(marker)]).toMatchObject([{ kind: "refused", code: "journal-refused" }, false]);
  });
});

describe("when the action ends, the marker", () => {
  async function cleanedUp(node: FakeNode): Promise<void> {
    const result = await mark(node);
    if (result.kind !== "done") throw new Error(result.kind);
    await result.cleanUp?.();
  }

  test("stays while the runtime knows the sandbox", async () => {
    await cleanedUp(DEAD);
    expect([existsSync(marker), await history()]).toMatchObject([true, [{ outcome: "healed" }]]);
  });

  test("stays when the runtime does not answer", async () => {
    const silent = new RuntimeError("deadline", "PodSandboxStatus", "no answer", "");
    await cleanedUp({ ...DEAD, cri: { podSandboxState: () => Promise.reject(silent) } });
    expect(existsSync(marker)).toBe(true);
  });

  test("goes once the sandbox is gone", async () => {
    await cleanedUp({ ...DEAD, cri: { podSandboxState: () => Promise.resolve(undefined) } });
    expect([existsSync(marker), await history()]).toMatchObject([false, [{ outcome: "healed" }]]);
  });

  test("that multus has replaced since stays", async () => {
    await cleanedUp({
      ...DEAD,
      cri: {
        podSandboxState: () => {
          writeFileSync(marker, "[{}]");
          return Promise.resolve(undefined);
        },
      },
    });
    expect(readFileSync(marker, "utf8")).toBe("[{}]");
  });
});
