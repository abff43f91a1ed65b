import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { writeDurably } from "../heal/files/durable-files.ts";
import { valueOr } from "../host/source.ts";
import { describeError } from "../host/system-error.ts";
import { readBoot } from "../snapshot/boot.ts";
import { readMetadataFile } from "../snapshot/metadata-file.ts";
import type { BootReport } from "./boot-report.ts";
import { borrowRuntime } from "./borrowed-runtime.ts";
import { type HealedOnce, type HealOnceOptions, healOnce } from "./heal-once.ts";
import { noteRuntime } from "./last-seen-runtime.ts";
import { clearBrokenCaches } from "./preflight.ts";
import type { Asked, RuntimeFiles } from "./runtime-files.ts";
import { bootMarker, chooseWay, HEALS_AFTER } from "./way.ts";

export interface BootOptions {
  readonly mode: "before" | "after";
  readonly deadlineMs: number;
  readonly force: boolean;
  readonly asked: Asked;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Including the host root. */
  readonly stateDir: string;
  /** A tmpfs directory for markers and the temporary runtime. */
  readonly runDir: string;
  readonly heal: Omit<HealOnceOptions, "remainingMs" | "deadline" | "env">;
  readonly log: (line: string) => void;
}

type Done = Pick<BootReport, "outcome" | "reason" | "healed" | "left">;

/** Reserved at the end for stopping child processes and writing the report. */
const CLOSING_MS = 2000;
/** The last part of it, for writing the report. */
const REPORT_MS = 300;

/** Heals once per boot. Never throws and never exceeds its deadline: a hook must not prevent a node from starting. */
export async function bootOnce(options: BootOptions): Promise<BootReport> {
  const startedAt = performance.now();
  const { observe } = options.heal;
  const boot = valueOr(readBoot({ root: observe.hostRoot, now: new Date() }), undefined);
  const marker = bootMarker(options.runDir, options.mode, boot?.id);
  const leftMs = (): number => Math.max(0, options.deadlineMs - (performance.now() - startedAt));
  const done = await atMost(leftMs() - REPORT_MS, withinDeadline(options, marker, boot?.id ?? ""), TOO_LATE);
  const report: BootReport = {
    apiVersion: "unghost.dev/v1",
    kind: "BootReport",
    boot: boot?.id ?? "",
    at: new Date().toISOString(),
    mode: options.mode,
    ...done,
    seconds: Math.round(performance.now() - startedAt) / 1000,
  };
  // A hung disk must not prevent the node from starting either.
  await atMost(leftMs(), keep(report, options, marker), undefined);
  return report;
}

const TOO_LATE: Done = {
  outcome: "failed",
  reason: "the deadline came before healing was done, and something that was started did not end",
  healed: 0,
  left: [],
};

/**
 * The result of the work, or `otherwise` on timeout; the work then continues in the background, and its error is
 * ignored.
 */
async function atMost<T>(milliseconds: number, work: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), Math.max(0, milliseconds));
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function withinDeadline(options: BootOptions, marker: string, bootId: string): Promise<Done> {
  const endsAt = performance.now() + Math.max(0, options.deadlineMs - CLOSING_MS);
  const remainingMs = (): number => Math.max(1, endsAt - performance.now());
  const deadline = AbortSignal.timeout(Math.ceil(remainingMs()));
  try {
    const way = await chooseWay({ ...options, observe: options.heal.observe, marker, bootId, deadline });
    switch (way.kind) {
      case "nothing":
        return { outcome: "nothing", reason: way.reason, healed: 0, left: [] };
      case "failed":
        return { outcome: "failed", reason: way.reason, healed: 0, left: [] };
      case "through-runtime":
        return await healAfterStart(options, remainingMs, deadline);
      case "caches-only":
        return await withoutRuntime(options, way.reason);
      case "borrow":
        return await healByBorrowing(options, way.files, remainingMs, deadline);
    }
  } catch (error) {
    return { outcome: "failed", reason: describeError(error), healed: 0, left: [] };
  }
}

async function healByBorrowing(
  options: BootOptions,
  files: RuntimeFiles,
  remainingMs: () => number,
  deadline: AbortSignal,
): Promise<Done> {
  const borrowed = await borrowRuntime(files, join(options.runDir, "borrowed"), deadline);
  if (borrowed.kind === "failed") return await withoutRuntime(options, borrowed.reason);
  const { runtime } = borrowed;
  options.log(`borrowed ${files.binary} over ${files.root}`);
  let healed: HealedOnce;
  try {
    const observe = { ...options.heal.observe, runtimeEndpoint: runtime.endpoint };
    const healing = healOnce({ ...healOptions(options, remainingMs, deadline), observe }, true);
    healed = await unlessTooLate(healing, deadline);
  } finally {
    await runtime.stop();
  }
  return verifiedByRecords(summary(healed), healed, files, options.heal.observe.hostRoot);
}

function healOptions({ heal, env }: BootOptions, remainingMs: () => number, deadline: AbortSignal): HealOnceOptions {
  return { ...heal, env, remainingMs, deadline };
}

/** The temporary runtime listed no ghosts; its records may still contain some. */
function verifiedByRecords(done: Done, healed: HealedOnce, files: RuntimeFiles, hostRoot: string): Done {
  if (healed.kind !== "healed" || done.outcome !== "healed") return done;
  const left = recordsLeft(files, hostRoot, healed.listed);
  if (left.kind === "none") return done;
  if (left.kind === "unknown") {
    return { ...done, outcome: "left", reason: `whether ghosts are left could not be verified: ${left.reason}` };
  }
  const reason = `${left.ids.length} sandboxes have a record that ${files.binary} does not list; ${HEALS_AFTER}`;
  return { ...done, outcome: "left", reason, left: left.ids.map((id) => `record/${id}`) };
}

/** Without a runtime, files that would make every removal fail can still be moved. */
async function withoutRuntime({ heal }: BootOptions, reason: string): Promise<Done> {
  const boot = readBoot({ root: heal.observe.hostRoot, now: new Date() });
  if (boot.status !== "read") return { outcome: "failed", reason, healed: 0, left: [] };
  const deadline = AbortSignal.timeout(CLOSING_MS);
  const healed = await clearBrokenCaches(heal.observe, heal.session, boot.value.startedAt, deadline);
  const cleared = healed === 0 ? "" : `; ${healed} broken cache files were moved to quarantine`;
  return { outcome: "failed", reason: reason + cleared, healed, left: [] };
}

const RETRY_MS = 500;

/** Waits for the runtime, then heals until nothing is left that can be healed. */
async function healAfterStart(options: BootOptions, remainingMs: () => number, deadline: AbortSignal): Promise<Done> {
  let last: HealedOnce = { kind: "failed", reason: "the runtime did not answer before the deadline" };
  let healed = 0;
  while (!deadline.aborted) {
    last = await unlessTooLate(healOnce(healOptions(options, remainingMs, deadline), false), deadline);
    if (last.kind === "healed") {
      healed += last.healed;
      await noteRuntime(options.stateDir, last.runtime).catch((error: unknown) =>
        options.log(`the runtime's version could not be written down: ${describeError(error)}`),
      );
      if (last.left.length === 0 || last.healed === 0) return { ...summary(last), healed };
    }
    await sleep(RETRY_MS);
  }
  return { ...summary(last), healed };
}

function unlessTooLate(healing: Promise<HealedOnce>, deadline: AbortSignal): Promise<HealedOnce> {
  const late = new Promise<HealedOnce>((resolve) => {
    const giveUp = (): void => resolve({ kind: "failed", reason: "the deadline came before healing was done" });
    if (deadline.aborted) giveUp();
    else deadline.addEventListener("abort", giveUp, { once: true });
  });
  return Promise.race([healing, late]);
}

function summary(result: HealedOnce): Done {
  if (result.kind === "failed") return { outcome: "failed", reason: result.reason, healed: 0, left: [] };
  const left = [...result.left];
  const reason = result.note ?? (left.length === 0 ? "no ghosts are left" : `${left.length} findings are left`);
  return { outcome: left.length === 0 ? "healed" : "left", reason, healed: result.healed, left };
}

/** The report and the marker of this boot. A full disk must not fail a boot: they are written to /run instead. */
async function keep(report: BootReport, options: BootOptions, marker: string): Promise<void> {
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  mkdirSync(options.runDir, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(join(options.runDir, "boot.json"), text, { mode: 0o600 });
    // The next start retries a failed boot, and one that had nothing to do.
    if (report.outcome === "healed" || report.outcome === "left") writeFileSync(marker, "");
    if (report.outcome === "nothing") return;
    await writeDurably(join(options.stateDir, "boot.json"), text);
  } catch (error) {
    options.log(`the report of this boot could not be kept: ${describeError(error)}`);
  }
}

/** - `none`: the runtime listed every sandbox with a record. */
type RecordsLeft =
  | { readonly kind: "none" }
  | { readonly kind: "left"; readonly ids: readonly string[] }
  | { readonly kind: "unknown"; readonly reason: string };

/**
 * Reads the database itself after the temporary runtime has stopped: sandboxes with a record that it did not list are
 * visible only there.
 */
function recordsLeft(files: RuntimeFiles, hostRoot: string, listed: readonly string[]): RecordsLeft {
  const metadata = readMetadataFile({ hostRoot, containerdRoot: files.root });
  if (metadata.status === "absent") return { kind: "none" };
  if (metadata.status === "failed") return { kind: "unknown", reason: metadata.error.message };
  const { records, sandboxes, damage } = metadata.value;
  if (damage.length > 0) return { kind: "unknown", reason: `${metadata.value.path} is damaged` };
  const known = new Set(listed);
  const stored = [...records.filter(({ kind }) => kind === "sandbox"), ...sandboxes].map(({ id }) => id);
  const ids = [...new Set(stored)].filter((id) => !known.has(id));
  return ids.length === 0 ? { kind: "none" } : { kind: "left", ids };
}
