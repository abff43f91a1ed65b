import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import {
  type HealSession,
  openHealSession,
  type SessionMemory,
  type SessionOptions,
} from "../../../src/heal/session.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { STOP, sessionOf, valueOf, WHY } from "../heal-fixture.ts";

let stateDir: string;
let memory: SessionMemory;
beforeEach(() => {
  stateDir = join(mkdtempSync(join(tmpdir(), "unghost-session-")), "state");
  memory = { settledAs: undefined };
});
afterEach(() => rmSync(join(stateDir, ".."), { recursive: true, force: true }));

async function opened(options: { readonly memory?: SessionMemory } = { memory }): Promise<HealSession> {
  return valueOf(await openHealSession({ ...sessionOf(stateDir), ...options }));
}

/** A complete heal. */
async function healOne(options?: { readonly memory?: SessionMemory }): Promise<void> {
  const session = await opened(options);
  const id = valueOf(await session.journal.begin({ ...WHY, action: STOP }));
  session.journal.ended(id, "healed");
  await session.close();
}

describe("a process that opens one session after another", () => {
  test("recognises its own journal", async () => {
    await healOne();
    expect(memory.settledAs).toBeDefined();
    const left = memory.settledAs;
    await (await opened()).close();
    expect(memory.settledAs).toBe(left);
  });

  test("does not read the journal again", async () => {
    const session = await opened();
    await session.journal.begin({ ...WHY, action: STOP });
    await session.close();
    const { dev, ino, size } = statSync(join(stateDir, "journal"));
    // As if it had been recovered: a reader of the journal would see the open entry.
    memory.settledAs = `${dev}:${ino}:${size}`;
    const next = await opened();
    expect(next.recoveries).toEqual([]);
    await next.close();
  });

  test("closes the entries that it left open itself", async () => {
    const session = await opened();
    await session.journal.begin({ ...WHY, action: STOP });
    await session.close();
    expect(memory.settledAs).toBeUndefined();
    const next = await opened();
    expect(next.recoveries).toMatchObject([{ kind: "stop-sandbox", how: "interrupted" }]);
    await next.close();
    expect(memory.settledAs).toBeDefined();
  });

  test("closes the entries that another process left open in between", async () => {
    await healOne();
    const other = await opened({});
    await other.journal.begin({ ...WHY, action: STOP });
    await other.close();
    const next = await opened();
    expect(next.recoveries).toHaveLength(1);
    await next.close();
  });

  test("reads the journal again when its last line is torn", async () => {
    await healOne();
    const [started = ""] = readFileSync(join(stateDir, "journal"), "utf8").split("\n");
    appendFileSync(join(stateDir, "journal"), `${started.replace(/"id":"[^"]+"/, '"id":"000000001-abcd"')}\n{"ev`);
    const next = await opened();
    expect(next.recoveries).toMatchObject([{ id: "000000001-abcd" }]);
    await next.close();
  });

  test("keeps nothing in memory while a session is open, because it may be killed", async () => {
    await healOne();
    const seen = memory.settledAs;
    const session = await opened();
    expect(memory.settledAs).toBeUndefined();
    await session.close();
    expect(memory.settledAs).toBe(seen);
  });
});

describe("openSession fails", () => {
  const journal = () => join(stateDir, "journal");

  async function refusal(options: Partial<SessionOptions> = {}): Promise<string> {
    const session = await openHealSession({ ...sessionOf(stateDir), ...options });
    if (session.ok) throw new Error("opened");
    return `${session.refusal.message} ${session.refusal.next}`;
  }

  test("when the state directory is not trusted", async () => {
    symlinkSync("/tmp", stateDir);
    expect(await refusal()).toContain("symbolic link");
  });

  test("when the disk has no room for the journal", async () => {
    expect(await refusal({ room: { freeBytes: Number.MAX_SAFE_INTEGER, trialBytes: 1 } })).toContain("full");
  });

  test("when the journal cannot be opened, and releases the lock", async () => {
    mkdirSync(journal(), { recursive: true });
    expect(await refusal()).toContain(journal());
    rmdirSync(journal());
    await (await opened()).close();
  });

  test("when the entries of earlier runs cannot be read, and releases the lock", async () => {
    await healOne();
    memory.settledAs = undefined;
    const failing = () => Promise.reject(diskError());
    const words = await withFileSystem({ readdir: failing }, () => refusal());
    expect(words).toContain(stateDir);
    expect(words).toMatch(/EIO.*nothing is changed/);
    await (await opened()).close();
  });
});

test.each(["agent", undefined] as const)("the journal records who started the run: %s", async (by) => {
  const session = valueOf(await openHealSession({ ...sessionOf(stateDir), ...(by !== undefined && { by }) }));
  await session.journal.begin({ ...WHY, action: STOP });
  await session.close();
  expect((await readHistory(join(stateDir, "journal"))).records[0]?.by).toBe(by);
});

describe("an entry that could not be closed", () => {
  test("is retried by the same process", async () => {
    const link = join(stateDir, "..", "link");
    const path = join(link, "f".repeat(64));
    const session = await opened();
    await session.journal.begin({ ...WHY, action: { kind: "write-marker", path, sha256: "0".repeat(64) } });
    await session.close();
    symlinkSync("/tmp", link);
    for (let run = 0; run < 2; run += 1) {
      const next = await opened();
      expect(next.recoveries).toMatchObject([{ how: "unsettled" }]);
      await next.close();
      expect(memory.settledAs).toBeUndefined();
    }
  });

  test("is found by a new process in a journal whose last line was torn", async () => {
    const session = await opened({});
    await session.journal.begin({ ...WHY, action: STOP });
    await session.close();
    appendFileSync(join(stateDir, "journal"), '{"ev');
    const next = await opened();
    expect(next.recoveries).toHaveLength(1);
    await next.close();
  });
});
