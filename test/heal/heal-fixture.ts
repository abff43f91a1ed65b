import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding } from "../../src/evidence/finding.ts";
import type { JournalAction } from "../../src/evidence/step.ts";
import { type JournalId, journalIds } from "../../src/heal/journal/entry.ts";
import { type HealContext, type JournalOptions, openJournal } from "../../src/heal/journal/journal.ts";
import { type FileIdentity, identifyFile } from "../../src/heal/quarantine/file-identity.ts";
import type { SessionOptions } from "../../src/heal/session.ts";
import { ownIdentity } from "../../src/heal/state/run-lock.ts";
import { openStateDir } from "../../src/heal/state/state-dir.ts";

/** A clock that starts at a fixed time and advances by a second at each read. */
export function steppingClock(): () => Date {
  let now = Date.UTC(2024, 0, 31, 10, 15, 30);
  return () => new Date((now += 1000));
}

/** Reproducible random numbers. */
export function steadyRandom(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

export const WHY = {
  finding: "result-cache-corrupt/example",
  class: "result-cache-corrupt",
  subject: { type: "file", path: "/var/lib/cni/results/example" },
} as const;

/** For steps that only journal their reason. */
export const FINDING: Finding = {
  id: "dead-after-crash/x",
  class: "dead-after-crash",
  severity: "critical",
  subject: { type: "node" },
  summary: "",
  evidence: [],
  blocks: [],
  treatment: { automatic: true, reversible: false, steps: [] },
  cure: [],
};

export const STOP: JournalAction = { kind: "stop-sandbox", sandboxId: "f".repeat(64) };

/** A directory for the state, one for the caches, and a journal. */
export interface HealFixture extends HealContext {
  readonly caches: string;
  readonly newId: () => JournalId;
  /** Writes a cache file and gives its path and its identity. */
  put(name: string, content: string | Uint8Array): Promise<{ readonly path: string; readonly expected: FileIdentity }>;
  remove(): Promise<void>;
}

export async function makeHealFixture(
  options: { readonly cachesUnder?: string } & Pick<JournalOptions, "maxBytes" | "keep"> = {},
): Promise<HealFixture> {
  const root = mkdtempSync(join(tmpdir(), "unghost-heal-"));
  const caches = mkdtempSync(join(options.cachesUnder ?? root, "unghost-caches-"));
  const stateDir = valueOf(await openStateDir(join(root, "state"), process.getuid?.() ?? 0));
  const clock = steppingClock();
  const newId = journalIds(clock, steadyRandom());
  const { cachesUnder: _cachesUnder, ...limits } = options;
  const journal = valueOf(await openJournal({ stateDir, run: "run-1", boot: "boot-1", clock, newId, ...limits }));
  return {
    stateDir,
    journal,
    hostRoot: "/",
    caches,
    newId,
    async put(name, content) {
      const path = join(caches, name);
      writeFileSync(path, content, { mode: 0o640 });
      return { path, expected: valueOf(await identifyFile("/", path)) };
    },
    async remove() {
      await journal.close();
      rmSync(root, { recursive: true, force: true });
      rmSync(caches, { recursive: true, force: true });
    },
  };
}

export function valueOf<T>(outcome: { ok: true; value: T } | { ok: false; refusal: { message: string } }): T {
  if (!outcome.ok) throw new Error(outcome.refusal.message);
  return outcome.value;
}

/** A second file system, if this machine has one besides that of the temporary directory. */
export function otherFileSystem(): string | undefined {
  for (const candidate of ["/dev/shm", "/run", "/var/tmp"]) {
    const stats = statSync(candidate, { throwIfNoEntry: false });
    if (stats === undefined || stats.dev === statSync(tmpdir()).dev) continue;
    try {
      const probe = mkdtempSync(join(candidate, "unghost-probe-"));
      rmSync(probe, { recursive: true });
      return candidate;
    } catch {
      // Not writable for us; the next one may be.
    }
  }
  return undefined;
}

/** A session of this process that does not wait for the lock. */
export function sessionOf(stateDir: string): SessionOptions {
  return {
    stateDir,
    hostRoot: "/",
    uid: process.getuid?.() ?? 0,
    own: ownIdentity(),
    clock: () => new Date(),
    random: Math.random,
    lockWaitMs: 0,
  };
}

const elsewhere = otherFileSystem();

/** The location of the caches relative to the quarantine: a move is a rename or a copy. */
export const LAYOUTS = [
  { name: "within one file system", cachesUnder: undefined, runs: true },
  { name: "across file systems", cachesUnder: elsewhere, runs: elsewhere !== undefined },
] as const;
