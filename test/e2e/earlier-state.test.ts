import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { openAttempts } from "../../src/agent/attempts-file.ts";
import { readTimeline } from "../../src/agent/state/timeline.ts";
import type { HistoryRecord, JournalProblem } from "../../src/heal/journal/reader.ts";
import { tempDir } from "../support/temp-dir.ts";
import { type AgentLine, BY_TRIGGERS_ALONE, type RunningAgent, startAgent } from "./running-agent.ts";
import { GUARD_MS, simulatedNode, unghost } from "./unghost.ts";

/** The state directory that each release left on a lab node: scripts/record-state.ts. */
const STATES = "test/e2e/states";
const BUILDS = readdirSync(STATES);

interface HistoryDocument {
  readonly entries: readonly (HistoryRecord & { readonly undoable: boolean })[];
  readonly problems: readonly JournalProblem[];
  readonly lastBoot?: unknown;
}

/** Puts the recorded state into a directory that is used as the root of a node. */
function placeState(build: string, root: string): string {
  const state = join(root, "var/lib/unghost");
  mkdirSync(join(root, "var/lib"), { recursive: true });
  cpSync(join(STATES, build), state, { recursive: true });
  // git keeps no empty directory and few modes.
  mkdirSync(join(state, "quarantine"), { recursive: true });
  for (const dir of [state, join(state, "quarantine")]) chmodSync(dir, 0o700);
  return state;
}

function rootWith(build: string): { readonly root: string; readonly state: string } {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  return { root: dir.path, state: placeState(build, dir.path) };
}

/** Waits for a line of the agent's log by its fields: messages may be reworded. */
function lineOf(agent: RunningAgent, isIt: (line: AgentLine) => boolean): Promise<AgentLine> {
  return until("the agent logs it", GUARD_MS, () => agent.lines.find(isIt));
}

async function historyOf(root: string): Promise<HistoryDocument> {
  const { code, stdout, stderr } = await unghost(["history", "-o", "json", "--host-root", root]);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as HistoryDocument;
}

describe.each(BUILDS)("state of build %s", (build) => {
  test("history lists every entry, with its outcome", async () => {
    const { root } = rootWith(build);

    const { entries, problems, lastBoot } = await historyOf(root);

    const listed = entries.map(({ action, state, outcome }) => `${action.kind} ${outcome ?? state}`);
    expect(problems).toEqual([]);
    expect(listed).toEqual(
      expect.arrayContaining([
        "quarantine-file healed",
        "save-logs healed",
        "remove-sandbox healed",
        "remove-sandbox failed",
        "remove-sandbox open",
      ]),
    );
    expect(entries.map(({ state }) => state)).toContain("undone");
    expect(entries.filter(({ undoable }) => undoable)).toHaveLength(3);
    expect(lastBoot).toMatchObject({ kind: "BootReport", outcome: "healed" });
  });

  test("undo puts every quarantined file back", async () => {
    const { root, state } = rootWith(build);
    mkdirSync(join(root, "var/lib/cni/results"), { recursive: true });
    const { entries } = await historyOf(root);

    for (const { id, action, undoable } of entries) {
      if (!undoable || action.kind !== "quarantine-file") continue;
      const content = readFileSync(join(state, "quarantine", id, action.path.replace(/.*\//, "")), "utf8");
      const { code, stderr } = await unghost(["undo", id, "--host-root", root]);
      expect([code, stderr.replace(/^An earlier run was interrupted.*\n/, "")]).toEqual([0, ""]);
      expect(readFileSync(join(root, action.path), "utf8")).toBe(content);
    }
    expect((await historyOf(root)).entries.filter(({ undoable }) => undoable)).toEqual([]);
  });

  test("an agent closes what that build left open, and keeps its budgets and its timeline", async () => {
    const node = await simulatedNode();
    const state = placeState(build, node.root);

    const agent = startAgent([...BY_TRIGGERS_ALONE, "--host-root", node.root]);
    await lineOf(agent, ({ recoveries }) => recoveries !== undefined);
    expect(await agent.stop()).toBe(0);

    expect(agent.lines.filter(({ problem }) => String(problem).includes(".json"))).toEqual([]);
    expect((await historyOf(node.root)).entries.map(({ state: of }) => of)).toContain("interrupted");
    expect(readdirSync(state).filter((name) => name.endsWith(".unreadable"))).toEqual([]);
  });

  test("the agent's budgets and timeline are read", () => {
    const { state } = rootWith(build);
    const recorded = JSON.parse(readFileSync(join(state, "timeline.json"), "utf8")) as { points: { minute: number }[] };
    const now = new Date((recorded.points.at(-1)?.minute ?? 0) * 1000);
    const problems: string[] = [];

    const { book } = openAttempts({
      stateDir: state,
      uid: process.getuid?.() ?? 0,
      stamp: () => ({ at: now }),
      onProblem: (problem) => problems.push(problem),
    });

    expect(problems).toEqual([]);
    const outcomes = [...book.ledger.values()].flatMap(({ attempts }) => attempts.map(({ outcome }) => outcome));
    expect(outcomes.toSorted()).toEqual(["failed", "failed", "healed"]);
    expect(readTimeline(state, now)).toEqual({ points: recorded.points });
  });
});

describe("state of a newer version", () => {
  const STAMP = { at: "2030-01-01T00:00:00.000Z", run: "0zzzzzzzz-0001", boot: "b" };
  const NEWER_ID = "0zzzzzzzz-0002";
  const NEWER = [
    {
      event: "begin",
      id: NEWER_ID,
      ...STAMP,
      finding: "f",
      class: "c",
      subject: { type: "file" },
      action: { kind: "rewrite-file" },
    },
    { event: "archived", id: NEWER_ID, ...STAMP },
  ].map((entry) => `${JSON.stringify(entry)}\n`);

  function newerState(): { readonly root: string; readonly state: string } {
    const place = rootWith(BUILDS[0] ?? "");
    appendFileSync(join(place.state, "journal"), NEWER.join(""));
    mkdirSync(join(place.state, "quarantine", NEWER_ID));
    writeFileSync(join(place.state, "quarantine", NEWER_ID, "file"), "content");
    return place;
  }

  test("history reports unreadable lines, and reads all others", async () => {
    const { root } = newerState();

    const { entries, problems } = await historyOf(root);
    const table = await unghost(["history", "--host-root", root]);

    expect(entries.filter(({ undoable }) => undoable)).toHaveLength(3);
    expect(problems.map(({ code, id }) => [code, id])).toEqual(NEWER.map(() => ["newer-version", NEWER_ID]));
    expect([table.code, table.stdout]).toEqual([
      0,
      expect.stringMatching(/^2 lines of the journal are written by a newer version of unghost\. /m),
    ]);
  });

  test("undo refuses its entries with the reason, and still undoes others", async () => {
    const { root, state } = newerState();
    mkdirSync(join(root, "var/lib/cni/results"), { recursive: true });

    const newer = await unghost(["undo", NEWER_ID, "--host-root", root]);
    const last = await unghost(["undo", "--last", "--host-root", root]);

    expect([newer.code, newer.stderr]).toEqual([3, expect.stringContaining("written by a newer version of unghost")]);
    expect(newer.stderr).toContain(join(state, "quarantine", NEWER_ID));
    expect(last.code).toBe(0);
    expect(readFileSync(join(state, "journal"), "utf8")).toContain(NEWER.join(""));
    expect(existsSync(join(state, "quarantine", NEWER_ID, "file"))).toBe(true);
  });

  test.each(["attempts.json", "timeline.json"])(
    "an agent reports %s that it cannot read, and keeps it",
    async (file) => {
      const node = await simulatedNode();
      const state = placeState(BUILDS[0] ?? "", node.root);
      const newer = '{"apiVersion":"unghost.dev/v9","kind":"Other"}\n';
      writeFileSync(join(state, file), newer);

      const agent = startAgent([...BY_TRIGGERS_ALONE, "--host-root", node.root]);
      const { problem } = await lineOf(agent, (line) => String(line["problem"]).includes(file));
      expect(await agent.stop()).toBe(0);

      expect(problem).toContain("written by another version of unghost (apiVersion unghost.dev/v9)");
      expect(readFileSync(join(state, `${file}.unreadable`), "utf8")).toBe(newer);
    },
  );
});
