import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { multusMarker } from "../../../src/heal/steps/files.ts";
import type { StepResult } from "../../../src/heal/steps/step-result.ts";
import { failed } from "../../../src/host/source.ts";
import { MULTUS_MARKER } from "../../../src/node/cni-files.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { heldOpenBelow } from "../../support/held-open.ts";
import { idOf, MULTUS, shimOf, snapshotOf, THICK_MULTUS } from "../../support/snapshot-builder.ts";
import { criSandbox, type FakeNode, fakeTools } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const DEAD = { sandboxes: [criSandbox(ID)] };

let fixture: HealFixture;
let dir: string;
let marker: string;

beforeEach(async () => {
  fixture = await makeHealFixture();
  dir = join(fixture.caches, "multus");
  marker = join(dir, ID);
  mkdirSync(dir);
  installMultus("4");
});
afterEach(() => fixture.remove());

function installMultus(major: string | undefined): void {
  const bin = join(fixture.caches, "bin");
  mkdirSync(bin, { recursive: true });
  const content =
    major === undefined ? "4".repeat(100) : `${"\0".repeat(1000)}k8snetworkplumbingwg/multus-cni.v${major}/pkg\0`;
  writeFileSync(join(bin, "multus"), content);
}

function confOf(conf: object) {
  const source = snapshotOf({ conf }).cni.conf;
  if (source.status !== "read") throw new Error("no configuration");
  return source.value;
}

function mark(node: FakeNode = DEAD, conf: object = MULTUS): Promise<StepResult> {
  const tools = { conf: confOf(conf), binDirs: [join(fixture.caches, "bin")], ...node.tools };
  return multusMarker({ kind: "multus-marker", sandboxId: ID, dir }, FINDING, fakeTools(fixture, { ...node, tools }));
}

async function history() {
  await fixture.journal.close();
  return (await readHistory(fixture.stateDir.journal)).records;
}

test("multus-marker is written for a dead sandbox of thin multus, after the journal entry", async () => {
  const result = await mark();

  expect([result.kind, readFileSync(marker, "utf8")]).toEqual(["done", MULTUS_MARKER]);
  expect(heldOpenBelow(dir)).toEqual([]);
  expect(await history()).toMatchObject([{ action: { kind: "write-marker", path: marker }, state: "open" }]);
});

test("multus-marker accepts a multus version with two numbers", async () => {
  installMultus("10");
  expect((await mark()).kind).toBe("done");
});

describe("the multus binary is searched in each plugin directory", () => {
  const markWith = (...dirs: readonly string[]) => mark({ ...DEAD, tools: { binDirs: dirs } });
  let first: string;
  beforeEach(() => {
    first = join(fixture.caches, "first");
    mkdirSync(first);
  });

  test("through a symbolic link", async () => {
    symlinkSync(join(fixture.caches, "bin", "multus"), join(first, "multus"));
    expect((await markWith(first)).kind).toBe("done");
  });

  test.each<readonly [string, (path: string) => void]>([
    ["is empty", () => undefined],
    ["has a directory of that name", (path) => mkdirSync(path)],
    [
      "has a file of that name that is too large",
      (path) => {
        writeFileSync(path, "");
        truncateSync(path, 256 * 1024 * 1024 + 1);
      },
    ],
  ])("in the next one when the first %s", async (_, fill) => {
    fill(join(first, "multus"));
    expect((await markWith(first, join(fixture.caches, "bin"))).kind).toBe("done");
  });
});

describe("multus-marker refuses", () => {
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
    ["its DEL succeeds without a cache", THICK_MULTUS, "4"],
    ["it is too old to read a marker", MULTUS, "3"],
    ["its version is unknown", MULTUS, undefined],
    ["its version is not a number", MULTUS, "x4"],
  ])("when %s", async (_, conf, major) => {
    installMultus(major);
    expect([await mark(DEAD, conf), existsSync(marker)]).toEqual([{ kind: "unneeded" }, false]);
  });

  test("without a CNI configuration", async () => {
    const tools = fakeTools(fixture, { ...DEAD, tools: { conf: undefined, binDirs: [join(fixture.caches, "bin")] } });
    const result = await multusMarker({ kind: "multus-marker", sandboxId: ID, dir }, FINDING, tools);
    expect([result, existsSync(marker)]).toEqual([{ kind: "unneeded" }, false]);
  });

  test("to overwrite a cache that multus wrote", async () => {
    writeFileSync(marker, "[{}]");
    expect(await mark()).toEqual({ kind: "unneeded" });
    expect([readFileSync(marker, "utf8"), await history()]).toMatchObject([
      "[{}]",
      [{ outcome: "skipped", detail: expect.stringContaining(`${marker} exists`) }],
    ]);
  });

  test("to follow a symbolic link at the path", async () => {
    const elsewhere = join(fixture.caches, "elsewhere");
    symlinkSync(elsewhere, marker);
    expect([await mark(), existsSync(elsewhere)]).toEqual([{ kind: "unneeded" }, false]);
  });

  test("when the marker cannot be written", async () => {
    dir = join(fixture.caches, "missing");
    expect(await mark()).toMatchObject({ kind: "refused", code: "marker-not-written" });
    expect(await history()).toMatchObject([{ outcome: "refused" }]);
  });

  test("when the journal cannot be written", async () => {
    await fixture.journal.close();
    expect([await mark(), existsSync(marker)]).toMatchObject([{ kind: "refused", code: "journal-refused" }, false]);
  });
});

describe("at the end of the action, the marker", () => {
  async function cleanedUp(node: FakeNode): Promise<void> {
    const result = await mark(node);
    if (result.kind !== "done") throw new Error(result.kind);
    await result.cleanUp?.();
  }

  test("stays while the runtime has the sandbox", async () => {
    await cleanedUp(DEAD);
    expect([existsSync(marker), await history()]).toMatchObject([
      true,
      [{ outcome: "healed", detail: expect.stringContaining(`${marker} stays`) }],
    ]);
  });

  test("stays when the runtime does not answer", async () => {
    const silent = new RuntimeError("deadline", "PodSandboxStatus", "no answer", "");
    await cleanedUp({ ...DEAD, cri: { podSandboxState: () => Promise.reject(silent) } });
    expect(existsSync(marker)).toBe(true);
  });

  test("and its open entry stay when the directory is not trusted any more", async () => {
    const moved = join(fixture.caches, "moved");
    const replace = () => {
      renameSync(dir, moved);
      symlinkSync(moved, dir);
      return Promise.resolve(undefined);
    };
    await cleanedUp({ ...DEAD, cri: { podSandboxState: replace } });
    expect([existsSync(join(moved, ID)), await history()]).toMatchObject([true, [{ state: "open" }]]);
  });

  test("stays after an internal error, which is reported", async () => {
    const mistake = { ...DEAD, cri: { podSandboxState: () => Promise.reject(new TypeError("a mistake")) } };
    await expect(cleanedUp(mistake)).rejects.toThrow("a mistake");
    expect(existsSync(marker)).toBe(true);
  });

  test("is removed once the sandbox is gone", async () => {
    await cleanedUp({ ...DEAD, cri: { podSandboxState: () => Promise.resolve(undefined) } });
    expect([existsSync(marker), await history()]).toMatchObject([false, [{ outcome: "healed" }]]);
  });

  test("stays when multus has replaced it", async () => {
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
