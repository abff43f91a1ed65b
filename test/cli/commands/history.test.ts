import { appendFileSync, existsSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type HistoryOptions, historyFilter, runHistory } from "../../../src/cli/commands/history.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

async function history(changes: Partial<HistoryOptions> = {}, screenColumns?: number) {
  let stdout = "";
  let stderr = "";
  const io = {
    stdout: (text: string) => void (stdout += text),
    stderr: (text: string) => void (stderr += text),
    ...(screenColumns === undefined ? {} : { screenColumns }),
  };
  const uid = process.getuid?.() ?? 0;
  const code = await runHistory({ stateDir: fixture.stateDir.root, uid, output: "table", ...changes }, io);
  return { code, stdout, stderr };
}

async function twoEntries(): Promise<string> {
  const request = await fixture.put("cbr0-abc-eth0", "{");
  await quarantineFile(fixture, { ...WHY, ...request });
  valueOf(
    await fixture.journal.begin({
      ...WHY,
      subject: { type: "sandbox", pod: { namespace: "default", name: "web" } },
      action: STOP,
    }),
  );
  return request.path;
}

describe("runHistory", () => {
  test("shows one line per run, with what became of its findings, and where the details are", async () => {
    const path = await twoEntries();

    const { code, stdout } = await history();

    const [heading, run, details, hint] = stdout.split("\n");
    expect(code).toBe(0);
    expect(heading?.split(/ {2,}/)).toEqual(["RUN", "WHEN", "BY", "RESULT", "WHAT", "CLASS", "UNDO"]);
    expect(run?.split(/ {2,}/).slice(3)).toEqual(["1 open", `${basename(path)}, default/web`, WHY.class, "1 file"]);
    expect(details).toBe("One run: unghost history RUN   Every step: unghost history -v");
    expect(hint).toBe("1 file can be put back; unghost quarantine lists the ids.");
    const ofRun = await history({ id: "un-1" });
    expect(ofRun.stdout).toMatch(/^ {4}put back by: unghost undo \S+$/m);
  });

  test.each<readonly [string, Parameters<typeof historyFilter>[0], number]>([
    ["--pod with its namespace", { pod: "default/web" }, 1],
    ["--pod without", { pod: "web" }, 1],
    ["another pod", { pod: "shop/web" }, 0],
    ["--since a time before", { since: "2024-01-01T00:00:00Z" }, 2],
    ["--since a duration that is over", { since: "1h" }, 0],
    ["--class", { class: "libcni-result-cache-corrupt" }, 0],
    ["--failed: what was interrupted", { failed: true }, 1],
  ])("filters by %s", async (_, flags, entries) => {
    await twoEntries();

    const { stdout } = await history({ output: "json", isWanted: await historyFilter(flags) });

    expect(JSON.parse(stdout).entries).toHaveLength(entries);
  });

  test.each([
    [{ since: "yesterday" }, "is neither a duration like 24h nor a time"],
    [{ class: "no-such-class" }, 'unknown failure class "no-such-class"'],
  ])("refuses %j", async (flags, message) => {
    await expect(historyFilter(flags)).rejects.toThrow(message);
  });

  test("shows one line per entry with -v, and how to undo", async () => {
    const path = await twoEntries();

    const { code, stdout } = await history({ verbose: true });

    const [heading, first, second, hint] = stdout.split("\n");
    expect(code).toBe(0);
    expect(heading?.split(/ {2,}/)).toEqual(["ID", "WHEN", "BY", "RUN", "OUTCOME", "ACTION", "ON", "CLASS", "UNDO"]);
    expect(first?.split(/ {2,}/)[1]).toMatch(/^\d+[smhd] ago$/);
    expect(first?.split(/ {2,}/).slice(4)).toEqual(["done", "quarantine-file", path, WHY.class, "yes"]);
    expect(second?.split(/ {2,}/).slice(4)).toEqual(["open", "stop-sandbox", "default/web", WHY.class, "-"]);
    expect(hint).toBe("1 file can be put back; unghost quarantine lists the ids.");
  });

  test("of one run shows why, then what, and where the files are; the end of its id is enough", async () => {
    const evidence = [{ source: "cni results", fact: "the file is empty" }];
    const request = await fixture.put("cbr0-abc-eth0", "{");
    await quarantineFile(fixture, { ...WHY, evidence, ...request });
    valueOf(await fixture.journal.begin({ ...WHY, evidence, action: STOP }));

    const byEnd = await history({ id: "un-1" });
    const asJson = await history({ id: "run-1", output: "json" });

    const [head, gap, finding, because, moved, kept, undo, stopped] = byEnd.stdout.split("\n");
    expect([byEnd.code, gap, finding]).toEqual([0, "", WHY.finding]);
    expect(head).toMatch(/^Run run-1.*, boot boot-1$/);
    expect(because).toBe("    because  cni results: the file is empty");
    expect(moved).toMatch(/^ {2}\+\d+\.\d\ds {2}quarantine-file .* done$/);
    expect(kept).toContain(`kept in ${join(fixture.stateDir.root, "quarantine")}/`);
    expect(undo).toMatch(/^ {4}put back by: unghost undo \S+$/);
    expect(stopped).toMatch(/ stop-sandbox .* open$/);
    expect(JSON.parse(asJson.stdout)).toMatchObject({ entries: [{ evidence }, { run: "run-1" }] });
    await expect(history({ id: "1" })).rejects.toThrow('there is no entry "1" in the journal');
  });

  test.each([
    [80, ["ID", "WHEN", "BY", "RUN", "OUTCOME", "ACTION", "ON", "UNDO"]],
    [72, ["ID", "WHEN", "BY", "OUTCOME", "ACTION", "ON", "UNDO"]],
    [60, ["ID", "WHEN", "OUTCOME", "ACTION", "ON"]],
  ])("at %i columns shows actor and undo before the class", async (screenColumns, headings) => {
    await twoEntries();

    const { stdout } = await history({ verbose: true }, screenColumns);

    expect(stdout.split("\n")[0]?.split(/ {2,}/)).toEqual(headings);
    for (const line of stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(screenColumns);
  });

  test.each(["json", "yaml"] as const)("contains the same facts as %s", async (output) => {
    const path = await twoEntries();

    const { code, stdout } = await history({ output });

    expect(code).toBe(0);
    expect(output === "json" ? JSON.parse(stdout) : parse(stdout)).toMatchObject({
      apiVersion: "unghost.dev/v1",
      kind: "History",
      entries: [
        { state: "done", outcome: "healed", undoable: true, action: { path, before: { size: "1" } } },
        { state: "open", undoable: false, action: STOP },
      ],
      problems: [],
    });
  });

  test("shows one entry completely, with its undo command", async () => {
    const path = await twoEntries();
    const { id } = JSON.parse((await history({ output: "json" })).stdout).entries[0];

    const { code, stdout } = await history({ id });

    expect(code).toBe(0);
    expect(stdout).toContain(`On:          ${path}\n`);
    expect(stdout).toContain(`Undo:        unghost undo ${id}\n`);
    await expect(history({ id: "000000000-0000" })).rejects.toThrow("there is no entry");
  });

  test("shows only the newest entries on request", async () => {
    await twoEntries();

    const { stdout } = await history({ output: "json", limit: 1 });

    expect(JSON.parse(stdout)).toMatchObject({ entries: [{ action: STOP }] });
  });

  test("names unreadable lines, and prints no control characters", async () => {
    appendFileSync(fixture.stateDir.journal, "damage\n");
    await fixture.journal.begin({ ...WHY, class: "\u001b[31m", action: STOP });

    const { code, stdout } = await history();

    expect(code).toBe(0);
    expect(stdout).toContain("1 line of the journal could not be read:\n");
    expect(stdout).toContain("journal, line 1: not a complete JSON object");
    expect(stdout).not.toContain("\u001b");
  });

  test("reports that nothing was ever changed, without creating a directory", async () => {
    const stateDir = join(fixture.caches, "none");

    expect(await history({ stateDir })).toMatchObject({
      code: 0,
      stdout: "unghost has not changed anything on this node.\n",
    });
    expect(existsSync(stateDir)).toBe(false);
  });

  test("exits 2 when the journal is not readable", async () => {
    const { code, stderr } = await history({ uid: 12345 });

    expect(code).toBe(2);
    expect(stderr).toContain("belongs to user");
  });
});
