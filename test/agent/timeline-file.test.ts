import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openStore } from "../../src/agent/state/store.ts";
import { addToTimeline, keepTimeline, readTimeline } from "../../src/agent/state/timeline.ts";
import { fill, tempDir } from "../node/temp-dir.ts";
import { freshState } from "./metrics/agent-state.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const uid = process.getuid?.() ?? 0;

/** Keeps one point, written at that time, and returns the problems. */
async function kept(stateDir: string, at: Date = NOW): Promise<readonly string[]> {
  const problems: string[] = [];
  const store = openStore(freshState());
  const keeper = keepTimeline(store, { stateDir, uid }, (problem) => problems.push(problem));
  store.update((state) => ({ ...state, timeline: addToTimeline([], { at, ghosts: 7 }) }));
  await keeper.close();
  return problems;
}

describe("timeline file", () => {
  test("restores the timeline at the next start", async () => {
    const stateDir = join(tempDir(), "state");

    expect(await kept(stateDir)).toEqual([]);

    expect(readTimeline(stateDir, NOW)).toMatchObject({ points: [{ ghosts: 7 }] });
    expect(statSync(join(stateDir, "timeline.json")).mode & 0o077).toBe(0);
  });

  test("drops minutes older than a day, or from the future", async () => {
    const stateDir = join(tempDir(), "state");
    await kept(stateDir);

    expect(readTimeline(stateDir, new Date(NOW.getTime() + 25 * 3_600_000))).toEqual({ points: [] });
    expect(readTimeline(stateDir, new Date(NOW.getTime() - 3_600_000))).toEqual({ points: [] });
  });

  test("starts empty on a new node", () => {
    expect(readTimeline(tempDir(), NOW)).toEqual({ points: [] });
  });

  test.each([
    ["truncated", '{"apiVersion":"unghost.dev/v1","kind":"Timel'],
    ["another kind", '{"apiVersion":"unghost.dev/v1","kind":"BootReport","points":[]}'],
    ["negative counts", '{"apiVersion":"unghost.dev/v1","kind":"Timeline","points":[{"minute":-1}]}'],
    ["empty", ""],
  ])("reports and ignores a damaged file (%s)", (_how, text) => {
    const stateDir = fill(tempDir(), { "timeline.json": text });

    expect(readTimeline(stateDir, NOW)).toEqual({ problem: expect.stringContaining("timeline.json") });
  });

  test("reports an unusable directory, and does not fail", async () => {
    const notOne = join(fill(tempDir(), { state: "a file" }), "state");

    expect(await kept(notOne)).toEqual([expect.stringContaining("not a directory")]);
    expect(readFileSync(notOne, "utf8")).toBe("a file");
  });

  test("reports a directory at the file's path, and keeps it", async () => {
    const stateDir = tempDir();
    mkdirSync(join(stateDir, "timeline.json"));
    writeFileSync(join(stateDir, "timeline.json/mine"), "");

    expect(await kept(stateDir)).toEqual([expect.stringContaining("could not be kept")]);
    expect(readTimeline(stateDir, NOW)).toEqual({ problem: expect.stringContaining("timeline.json") });
  });
});
