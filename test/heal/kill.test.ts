import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isOpen, readHistory } from "../../src/heal/history.ts";
import { ownIdentity } from "../../src/heal/process-identity.ts";
import { openHealSession } from "../../src/heal/session.ts";
import { stateDirLayout } from "../../src/heal/state-dir.ts";
import { otherFileSystem, steadyRandom, valueOf } from "./workshop.ts";

const FILES = 40;
const KILLS = 12;
const program = join(import.meta.dirname, "fixtures", "quarantine-all.ts");

/** Starts the program and kills it so many milliseconds after it has begun to work. */
async function runAndKill(stateDir: string, caches: string, afterMs: number): Promise<void> {
  const child = spawn(process.execPath, [program, stateDir, caches], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await new Promise<void>((resolve) => {
    child.stdout.once("data", () => resolve());
    child.once("close", () => resolve());
  });
  await sleep(afterMs);
  child.kill("SIGKILL");
  await ended;
}

async function settle(stateDir: string): Promise<void> {
  const session = valueOf(
    await openHealSession({
      stateDir,
      hostRoot: "/",
      uid: process.getuid?.() ?? 0,
      own: ownIdentity(),
      clock: () => new Date(),
      random: Math.random,
      sleep,
      lockWaitMs: 0,
    }),
  );
  expect(session.recoveries.filter(({ how }) => how === "lost" || how === "unsettled")).toEqual([]);
  await session.close();
}

/** Every file is in exactly one of the two places, whole; and what is in quarantine is in the journal, and done. */
async function expectNothingLost(stateDir: string, caches: string): Promise<number> {
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
  return kept.size;
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
    test(`${KILLS} times at random moments loses nothing`, { timeout: 240_000 }, async () => {
      const random = steadyRandom(Date.now() % 1_000_000);
      const root = mkdtempSync(join(tmpdir(), "unghost-kill-"));
      const caches = mkdtempSync(join(cachesUnder, "unghost-kill-"));
      const stateDir = join(root, "state");
      try {
        for (let kill = 0; kill < KILLS; kill++) {
          for (let number = 0; number < FILES; number++) {
            if (kill === 0) writeFileSync(join(caches, `cache-${number}`), contentOf(number));
          }
          await runAndKill(stateDir, caches, Math.floor(random() * 40));
          await settle(stateDir);
          await expectNothingLost(stateDir, caches);
        }
      } finally {
        rmSync(root, { recursive: true, force: true });
        rmSync(caches, { recursive: true, force: true });
      }
    });
  });
}
