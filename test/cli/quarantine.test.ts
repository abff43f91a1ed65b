import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../../src/cli/app.ts";
import { readHistory } from "../../src/heal/journal/reader.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, makeHealFixture, valueOf, WHY } from "../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function quarantine(...args: readonly string[]) {
  let stdout = "";
  let stderr = "";
  const io = {
    stdout: (text: string) => void (stdout += text),
    stderr: (text: string) => void (stderr += text),
    env: {},
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 100,
    stdin: async function* () {},
  };
  const where = ["--state-dir", fixture.stateDir.root, "--host-root", "/"];
  return { code: await runCli(["quarantine", ...args, ...where], io), stdout, stderr };
}

/** The fixture's clock is in 2024: older than any retention. */
async function oldEntry(): Promise<string> {
  const outcome = await quarantineFile(fixture, { ...WHY, ...(await fixture.put("cbr0-abc-eth0", "{")) });
  return outcome.id ?? "";
}

test("list shows each entry with age, size, origin and whether it can be undone", async () => {
  const id = await oldEntry();

  const { code, stdout } = await quarantine("list");

  const [heading, row, summary] = stdout.split("\n");
  expect(code).toBe(0);
  expect(heading?.split(/ {2,}/)).toEqual(["ID", "AGE", "SIZE", "CONTENT", "FROM", "CLASS", "UNDO"]);
  expect(row?.split(/ {2,}/)).toEqual([
    id,
    expect.stringMatching(/^\d+d$/),
    "1 B",
    "file",
    join(fixture.caches, "cbr0-abc-eth0"),
    WHY.class,
    "yes",
  ]);
  expect(summary).toBe("1 B in quarantine, kept for 30d (agent.quarantineRetention).");
});

test("show prints the entry with its files; logs prints saved logs, and nothing else as if it were one", async () => {
  const id = await oldEntry();
  const saved = valueOf(
    await fixture.journal.begin({ ...WHY, action: { kind: "save-logs", sandboxId: "a".repeat(64), paths: [] } }),
  );
  await fixture.journal.done(saved, "healed", "");
  const log = join(fixture.stateDir.quarantine, saved, "logs/main/0.log");
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, "line one\n\u001b[31mline two\n");

  const shown = await quarantine("show", id);
  const logs = await quarantine("logs", saved);
  const notLogs = await quarantine("logs", id);
  const unknown = await quarantine("show", "nothing");

  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain(`Undo:        unghost undo ${id}\n`);
  expect(shown.stdout).toMatch(/^File: {8}\S+\/quarantine\/\S+ \(1 B\)$/m);
  expect(logs).toMatchObject({ code: 0, stdout: `==> ${log}\nline one\n\\x1b[31mline two\n` });
  expect([notLogs.code, notLogs.stderr]).toEqual([64, expect.stringContaining("has no saved logs")]);
  expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('no entry "nothing"')]);
});

test("list as JSON", async () => {
  const id = await oldEntry();

  const { stdout } = await quarantine("list", "-o", "json");

  expect(JSON.parse(stdout)).toMatchObject({
    apiVersion: "unghost.dev/v1",
    kind: "Quarantine",
    retention: "30d",
    entries: [{ id, bytes: 1, files: 1, undoable: true, class: WHY.class }],
  });
});

test("list of an empty quarantine, and of a node that unghost never changed", async () => {
  expect(await quarantine("list")).toMatchObject({ code: 0, stdout: "Quarantine is empty.\n" });
  expect(await quarantine("prune")).toMatchObject({ code: 0, stdout: "Nothing to prune.\n" });
});

test("prune without a terminal needs --yes", async () => {
  const id = await oldEntry();

  const { code, stderr } = await quarantine("prune");

  expect([code, stderr]).toEqual([3, expect.stringContaining("Run it with --yes")]);
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([id]);
});

test("prune --dry-run deletes nothing, --yes deletes what is older than the retention", async () => {
  await oldEntry();

  const dry = await quarantine("prune", "--dry-run");
  expect([dry.code, existsSync(fixture.stateDir.quarantine)]).toEqual([0, true]);
  expect(dry.stdout).toContain("Dry run: nothing was deleted.");
  expect(readdirSync(fixture.stateDir.quarantine)).toHaveLength(1);

  expect(await quarantine("prune", "--yes")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 entry deleted, 1 B freed."),
  });
  expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
  expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([{ state: "pruned" }]);
});

test("prune --older-than keeps younger entries", async () => {
  await oldEntry();

  expect(await quarantine("prune", "--older-than", "3650d", "--yes")).toMatchObject({
    code: 0,
    stdout: "Nothing to prune.\n",
  });
});

test.each([
  [["prune", "--older-than", "soon"], "is not a duration"],
  [["prune", "nosuchid0-0000"], "there is no entry"],
  [["prune", "mp0000000-0000", "--older-than", "1d"], "not both"],
  [["wipe"], "use list, show, logs or prune"],
  [["list", "mp0000000-0000"], "takes no id"],
])("%j is a usage error", async (args, message) => {
  const { code, stderr } = await quarantine(...args);

  expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
});
