import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatEntry, type JournalId } from "../../../src/heal/journal/entry.ts";
import { type Journal, type JournalOptions, openJournal } from "../../../src/heal/journal/journal.ts";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { undo } from "../../../src/heal/quarantine/undo.ts";
import { type HealFixture, makeHealFixture, STOP, steppingClock, valueOf, WHY } from "../heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture({ maxBytes: 4000, keep: 2 });
});
afterEach(() => fixture.remove());

async function reopen(changes: Partial<JournalOptions> = {}): Promise<Journal> {
  const { stateDir, newId } = fixture;
  const clock = steppingClock();
  return valueOf(await openJournal({ stateDir, newId, clock, run: "run-2", boot: "boot-2", ...changes }));
}

async function beginAndEnd(journal: Journal): Promise<JournalId> {
  const id = valueOf(await journal.begin({ ...WHY, action: STOP }));
  await journal.done(id, "healed");
  return id;
}

describe("Journal", () => {
  test("begin() returns ok after the line is on disk, with mode 0600", async () => {
    const id = valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));

    const [line] = readFileSync(fixture.stateDir.journal, "utf8").split("\n");
    expect(JSON.parse(line ?? "")).toMatchObject({ event: "begin", id, run: "run-1", boot: "boot-1", action: STOP });
    expect(statSync(fixture.stateDir.journal).mode & 0o777).toBe(0o600);
  });

  test("the evidence of a finding is kept once a run, and bounded", async () => {
    const evidence = Array.from({ length: 40 }, (_, index) => ({
      source: "cri",
      fact: `${index} ${"x".repeat(1000)}`,
    }));
    const { journal } = fixture;

    for (let step = 0; step < 3; step++) valueOf(await journal.begin({ ...WHY, action: STOP, evidence }));
    const next = await reopen();
    valueOf(await next.begin({ ...WHY, action: STOP, evidence: evidence.slice(0, 1) }));

    const { records } = await readHistory(fixture.stateDir.journal);
    expect(records.map((record) => record.evidence?.length)).toEqual([12, undefined, undefined, 1]);
    expect(Math.max(...(records[0]?.evidence ?? []).map(({ fact }) => fact.length))).toBe(300);
  });

  test("keeps every entry of concurrent writers", async () => {
    const journal = await reopen();
    const ids = await Promise.all(Array.from({ length: 300 }, () => beginAndEnd(journal)));

    const { records, problems } = await readHistory(fixture.stateDir.journal);

    expect(problems).toEqual([]);
    expect(records.map(({ id, state }) => `${id} ${state}`)).toEqual(ids.map((id) => `${id} done`));
    await journal.close();
  });

  test("writes an end that is not awaited with the next entry, and on close", async () => {
    const journal = await reopen();
    const first = valueOf(await journal.begin({ ...WHY, action: STOP }));
    journal.ended(first, "healed");
    expect((await readHistory(fixture.stateDir.journal)).records.at(-1)).toMatchObject({ id: first, state: "open" });
    const second = valueOf(await journal.begin({ ...WHY, action: STOP }));
    journal.ended(second, "failed", "why");
    const between = (await readHistory(fixture.stateDir.journal)).records.map(({ id, state }) => [id, state]);
    expect(between).toEqual([
      [first, "done"],
      [second, "open"],
    ]);

    await journal.close();

    const last = (await readHistory(fixture.stateDir.journal)).records.at(-1);
    expect(last).toMatchObject({ id: second, state: "done", outcome: "failed", detail: "why" });
  });

  test("starts on a new line after a last line torn at any byte", async () => {
    const before = await beginAndEnd(fixture.journal);
    const whole = readFileSync(fixture.stateDir.journal);
    const torn = Buffer.from(
      formatEntry({ event: "undoing", id: before, at: "2024-01-31T10:15:30.000Z", run: "run-1", boot: "boot-1" }),
    );
    for (let cut = 1; cut < torn.length; cut++) {
      writeFileSync(fixture.stateDir.journal, Buffer.concat([whole, torn.subarray(0, cut)]));
      const journal = await reopen();

      const after = await beginAndEnd(journal);

      await journal.close();
      const { records, problems } = await readHistory(fixture.stateDir.journal);
      expect({ cut, problems, ids: records.map(({ id }) => id) }).toEqual({ cut, problems: [], ids: [before, after] });
    }
  });

  test("reports a damaged line and continues", async () => {
    await beginAndEnd(fixture.journal);
    appendFileSync(fixture.stateDir.journal, "damage\n");
    await beginAndEnd(fixture.journal);

    const { records, problems } = await readHistory(fixture.stateDir.journal);

    expect(records).toHaveLength(2);
    expect(problems).toEqual([
      { file: fixture.stateDir.journal, line: 3, code: "damaged", reason: expect.stringContaining("JSON") as unknown },
    ]);
  });

  test.each([
    ["a symbolic link", (path: string) => symlinkSync("/dev/null", path)],
    ["a directory", (path: string) => mkdirSync(path)],
  ])("refuses to write to %s", async (_name, arrange) => {
    rmSync(fixture.stateDir.journal);
    arrange(fixture.stateDir.journal);

    const { stateDir, newId } = fixture;
    const opened = await openJournal({ stateDir, newId, clock: steppingClock(), run: "r", boot: "b" });

    expect(!opened.ok && opened.refusal.message).toContain(`The journal ${stateDir.journal} cannot be written`);
  });

  test("returns an error once it is closed, and does not throw", async () => {
    const journal = await reopen();
    await journal.close();

    expect((await journal.begin({ ...WHY, action: STOP })).ok).toBe(false);
  });
});

describe("rotation", () => {
  test("limits the size and the number of files", async () => {
    for (let round = 0; round < 100; round++) await beginAndEnd(fixture.journal);

    const { journal } = fixture.stateDir;
    for (const path of [journal, `${journal}.1`, `${journal}.2`]) expect(statSync(path).size).toBeLessThan(6000);
    expect(existsSync(`${journal}.3`)).toBe(false);
    expect(existsSync(`${journal}.merging`)).toBe(false);
  });

  test("keeps entries whose file is in quarantine and open entries, and no others", async () => {
    const moved = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("one", "content")) });
    const undone = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("two", "content")) });
    if (moved.outcome !== "healed" || undone.outcome !== "healed") throw new Error("not moved");
    await undo(fixture, { id: undone.id });
    const open = valueOf(await fixture.journal.begin({ ...WHY, action: STOP }));
    const ended = await beginAndEnd(fixture.journal);

    for (let round = 0; round < 200; round++) await beginAndEnd(fixture.journal);

    const { records, problems } = await readHistory(fixture.stateDir.journal);
    const stateOf = new Map(records.map(({ id, state }) => [id, state]));
    expect(problems).toEqual([]);
    expect([moved.id, open, undone.id, ended].map((id) => stateOf.get(id))).toEqual([
      "done",
      "open",
      undefined,
      undefined,
    ]);
    expect(await undo(fixture, { id: moved.id })).toMatchObject({ outcome: "undone" });
  });

  test("keeps entries of a newer version about a file in quarantine", async () => {
    const id = fixture.newId();
    mkdirSync(join(fixture.stateDir.quarantine, id));
    appendFileSync(fixture.stateDir.journal, `${JSON.stringify({ event: "painted", id })}\n`);

    for (let round = 0; round < 200; round++) await beginAndEnd(fixture.journal);

    const { journal } = fixture.stateDir;
    const all = [`${journal}.2`, `${journal}.1`, journal].map((path) => readFileSync(path, "utf8")).join("");
    expect(all.split("\n").filter((line) => line.includes("painted"))).toHaveLength(1);
  });

  test("continues in the old file with a warning when it cannot rotate", async () => {
    mkdirSync(join(`${fixture.stateDir.journal}.1`, "in-the-way"), { recursive: true });

    for (let round = 0; round < 30; round++) await beginAndEnd(fixture.journal);

    expect((await readHistory(fixture.stateDir.journal)).records).toHaveLength(30);
    expect(fixture.journal.warnings[0]).toMatch(/could not be rotated/);
  });
});
