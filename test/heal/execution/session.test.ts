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
import {
  type HealSession,
  openHealSession,
  type SessionMemory,
  type SessionOptions,
} from "../../../src/heal/execution/session.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { diskError, withFileSystem } from "../../support/failing-fs.ts";
import { STOP, sessionOf, valueOf, WHY } from "../workshop.ts";

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

/** A healing from its beginning to its end. */
async function healOne(options?: { readonly memory?: SessionMemory }): Promise<void> {
  const session = await opened(options);
  const id = valueOf(await session.journal.begin({ ...WHY, action: STOP }));
  session.journal.ended(id, "healed");
  await session.close();
}

describe("a process that opens one session after the other", () => {
  test("knows its own journal again", async () => {
    await healOne();
    expect(memory.settledAs).toBeDefined();
    const left = memory.settledAs;
    await (await opened()).close();
    expect(memory.settledAs).toBe(left);
  });

  test("does not read again what it knows", async () => {
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

  test("settles what it left open itself", async () => {
    const session = await opened();
    await session.journal.begin({ ...WHY, action: STOP });
    await session.close();
    expect(memory.settledAs).toBeUndefined();
    const next = await opened();
    expect(next.recoveries).toMatchObject([{ kind: "stop-sandbox", how: "interrupted" }]);
    await next.close();
    expect(memory.settledAs).toBeDefined();
  });

  test("settles what another process left open in between", async () => {
    await healOne();
    const other = await opened({});
    await other.journal.begin({ ...WHY, action: STOP });
    await other.close();
    const next = await opened();
    expect(next.recoveries).toHaveLength(1);
    await next.close();
  });

  test("does not trust a journal whose last line was torn", async () => {
    await healOne();
    const [started = ""] = readFileSync(join(stateDir, "journal"), "utf8").split("\n");
    appendFileSync(join(stateDir, "journal"), `${started.replace(/"id":"[^"]+"/, '"id":"000000001-abcd"')}\n{"ev`);
    const next = await opened();
    expect(next.recoveries).toMatchObject([{ id: "000000001-abcd" }]);
    await next.close();
  });

  test("remembers nothing while a session is open: it may be killed in it", async () => {
    await healOne();
    const seen = memory.settledAs;
    const session = await opened();
    expect(memory.settledAs).toBeUndefined();
    await session.close();
    expect(memory.settledAs).toBe(seen);
  });
});

describe("a session is not opened", () => {
  const journal = () => join(stateDir, "journal");

  async function refusal(options: Partial<SessionOptions> = {}): Promise<string> {
    const session = await openHealSession({ ...sessionOf(stateDir), ...options });
    if (session.ok) throw new Error("opened");
    return `${session.refusal.message} ${session.refusal.next}`;
  }

  test("in a state directory that is not to be trusted", async () => {
    symlinkSync("/tmp", stateDir);
    expect(await refusal()).toContain("symbolic link");
  });

  test("where there is no room to remember what is done", async () => {
    expect(await refusal({ room: { freeBytes: Number.MAX_SAFE_INTEGER, trialBytes: 1 } })).toContain("full");
  });

  test("without a journal, and the lock is free afterwards", async () => {
    mkdirSync(journal(), { recursive: true });
    expect(await refusal()).toContain(journal());
    rmdirSync(journal());
    await (await opened()).close();
  });

  test("when what earlier runs left cannot be read, and the lock is free afterwards", async () => {
    await healOne();
    memory.settledAs = undefined;
    const failing = () => Promise.reject(diskError());
    const words = await withFileSystem({ readdir: failing }, () => refusal());
    expect(words).toContain(stateDir);
    expect(words).toMatch(/EIO.*nothing is changed/);
    await (await opened()).close();
  });
});

test.each(["agent", undefined] as const)("the journal knows who started the run: %s", async (by) => {
  const session = valueOf(await openHealSession({ ...sessionOf(stateDir), ...(by !== undefined && { by }) }));
  await session.journal.begin({ ...WHY, action: STOP });
  await session.close();
  expect((await readHistory(join(stateDir, "journal"))).records[0]?.by).toBe(by);
});

describe("what could not be settled", () => {
  test("is tried again by the same process", async () => {
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
