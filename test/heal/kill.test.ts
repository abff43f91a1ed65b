import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isOpen, readHistory } from "../../src/heal/journal/reader.ts";
import type { Recovery } from "../../src/heal/quarantine/recover.ts";
import { openHealSession } from "../../src/heal/session.ts";
import { stateDirLayout } from "../../src/heal/state/state-layout.ts";
import { otherFileSystem, sessionOf, valueOf } from "./heal-fixture.ts";

const FILES = 12;
const KILLS = 15;
const program = join(import.meta.dirname, "fixtures", "to-and-fro.ts");

/** Starts the program and kills it this many milliseconds after it has started to work. Returns its stderr. */
async function runAndKill(stateDir: string, caches: string, afterMs: number): Promise<string> {
  const child = spawn(process.execPath, [program, stateDir, caches], { stdio: ["ignore", "pipe", "pipe"] });
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await new Promise<void>((resolve) => {
    child.stdout.once("data", () => resolve());
    child.once("close", () => resolve());
  });
  await sleep(afterMs);
  child.kill("SIGKILL");
  await ended;
  return complaints;
}

async function settle(stateDir: string): Promise<readonly Recovery[]> {
  const session = valueOf(await openHealSession(sessionOf(stateDir)));
  await session.close();
  return session.recoveries;
}

/** Every file is complete in exactly one of the two places; quarantined files are in the journal; no entry is open. */
async function expectNothingLost(stateDir: string, caches: string): Promise<void> {
  const layout = stateDirLayout(stateDir);
  const { records, problems } = await readHistory(layout.journal);
  expect(problems).toEqual([]);
  expect(records.filter(isOpen)).toEqual([]);
  const stateOf = new Map(records.map(({ id, state }) => [String(id), state]));
  const kept = new Map<string, string>();
  for (const id of readdirSync(layout.quarantine)) {
    expect([id, stateOf.get(id)]).toEqual([id, "done"]);
    for (const name of readdirSync(join(layout.quarantine, id))) kept.set(name, join(layout.quarantine, id, name));
  }
  expect(readdirSync(caches).filter((name) => !name.startsWith("cache-"))).toEqual([]);
  for (let number = 0; number < FILES; number++) {
    const name = `cache-${number}`;
    const places = [kept.get(name), join(caches, name)].filter((path) => path !== undefined && existsSync(path));
    expect([name, places.length]).toEqual([name, 1]);
    expect(readFileSync(places[0] ?? "", "utf8")).toBe(contentOf(number));
  }
}

function contentOf(number: number): string {
  return `content ${number} `.repeat(200);
}

const elsewhere = otherFileSystem();
const layouts = [
  { name: "within one file system", cachesUnder: tmpdir(), runs: true },
  { name: "across file systems", cachesUnder: elsewhere ?? tmpdir(), runs: elsewhere !== undefined },
] as const;

for (const { name, cachesUnder, runs } of layouts) {
  describe.runIf(runs)(`kill -9 ${name}`, () => {
    test(`loses nothing when killed ${KILLS} times at random moments`, { timeout: 240_000 }, async () => {
      const root = mkdtempSync(join(tmpdir(), "unghost-kill-"));
      const caches = mkdtempSync(join(cachesUnder, "unghost-kill-"));
      const stateDir = join(root, "state");
      for (let number = 0; number < FILES; number++) writeFileSync(join(caches, `cache-${number}`), contentOf(number));
      const hows: string[] = [];
      try {
        for (let kill = 0; kill < KILLS; kill++) {
          expect(await runAndKill(stateDir, caches, Math.floor(Math.random() * 60))).toBe("");
          hows.push(...(await settle(stateDir)).map(({ how }) => how));
          await expectNothingLost(stateDir, caches);
        }
      } finally {
        rmSync(root, { recursive: true, force: true });
        rmSync(caches, { recursive: true, force: true });
      }
      // With four moves always in flight, a kill that interrupts nothing would mean that nothing was tested.
      expect(hows.length).toBeGreaterThan(0);
      expect(hows.filter((how) => how === "lost" || how === "unsettled")).toEqual([]);
    });
  });
}
