import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { classById, classes } from "../classes/index.ts";
import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { diagnoseOffline } from "../diagnose/offline.ts";
import { unreadSources } from "../diagnose/verdict.ts";
import { writeDurably } from "../heal/state/durable-files.ts";
import { placesAt } from "../host/distributions.ts";
import { existsSync } from "../host/guarded-fs.ts";
import { resolveOnHost } from "../host/paths.ts";
import { describeError, valueOr } from "../host/source.ts";
import { configuredConfDir } from "../node/containerd-config.ts";
import { readMetadataFile } from "../node/metadata.ts";
import { observeOffline } from "../node/observe-offline.ts";
import { readBoot } from "../node/process-table.ts";
import { type BootReport, noteRuntime, readBootReport, withEarlierSteps } from "./boot-report.ts";
import { borrowRuntime } from "./borrowed-runtime.ts";
import {
  healRound,
  leftToKubelet,
  missingAgent,
  type Round,
  type RoundOptions,
  throughRuntime,
  withoutRuntime,
} from "./round.ts";
import type { Asked, RuntimeFiles } from "./runtime-files.ts";
import { chooseWay, HEALS_AFTER, type Way } from "./way.ts";

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
  readonly heal: Omit<RoundOptions, "remainingMs" | "deadline" | "env" | "dryRun">;
  readonly log: (line: string) => void;
}

type Done = Pick<BootReport, "outcome" | "reason" | "healed" | "left">;

/** What `unghost boot` would do now. */
export interface BootPlan {
  readonly apiVersion: "unghost.dev/v1";
  readonly kind: "BootPlan";
  readonly boot: string;
  readonly mode: "before" | "after";
  readonly way: Way["kind"];
  readonly reason: string;
  /** Findings that it would heal. */
  readonly heal: readonly string[];
  /** Findings that it would skip. */
  readonly leave: readonly string[];
}

/** Reserved at the end for stopping child processes and writing the report. */
const CLOSING_MS = 2000;
/** The last part of it, for writing the report. */
const REPORT_MS = 300;

/** Heals once per boot. Never throws and never exceeds its deadline: a hook must not prevent a node from starting. */
export async function bootOnce(options: BootOptions): Promise<BootReport> {
  const startedAt = performance.now();
  const found = bootOf(options);
  const leftMs = (): number => Math.max(0, options.deadlineMs - (performance.now() - startedAt));
  const done = await atMost(leftMs() - REPORT_MS, withinDeadline(options, found), TOO_LATE);
  const report: BootReport = {
    apiVersion: "unghost.dev/v1",
    kind: "BootReport",
    boot: found.bootId,
    at: new Date().toISOString(),
    mode: options.mode,
    ...done,
    seconds: Math.round(performance.now() - startedAt) / 1000,
  };
  // A hung disk must not prevent the node from starting either.
  await atMost(leftMs(), keep(report, options, found.marker), undefined);
  return report;
}

/**
 * The same way and the same rounds, up to the plan: no marker, no report, no journal, and no runtime is started: the
 * records of one that would be borrowed show what it would list.
 */
export async function planBoot(options: BootOptions): Promise<BootPlan> {
  const found = bootOf(options);
  const deadline = AbortSignal.timeout(options.deadlineMs);
  const way = await chooseWay({ ...options, ...found, observe: options.heal.observe, deadline });
  const round: RoundOptions = { ...options.heal, env: options.env, remainingMs: () => 1, deadline, dryRun: true };
  const planned = await planOf(way, options.mode, round);
  return { apiVersion: "unghost.dev/v1", kind: "BootPlan", boot: found.bootId, mode: options.mode, ...planned };
}

type PlannedWay = Pick<BootPlan, "way" | "reason" | "heal" | "leave">;

async function planOf(way: Way, mode: BootOptions["mode"], options: RoundOptions): Promise<PlannedWay> {
  switch (way.kind) {
    case "nothing":
    case "failed":
      return { way: way.kind, reason: way.reason, heal: [], leave: [] };
    case "borrow": {
      const { binary, root } = way.files;
      const start = `${binary} would be started over ${root} on a private socket`;
      const { heal, leave } = await comingBack(way.files, options.observe);
      const agent = await missingAgentOf(way.files, options);
      if (agent !== undefined)
        return { way: "borrow", reason: `${start}; ${agent}`, heal: [], leave: [...heal, ...leave] };
      return { way: "borrow", reason: `${start}${shareOfKubelet(options.observe)}`, heal, leave };
    }
    case "caches-only": {
      const round = await healRound(withoutRuntime(options, CLOSING_MS), options);
      return { way: way.kind, reason: way.reason, heal: plannedIds(round), leave: [] };
    }
    case "through-runtime": {
      const round = await healRound(throughRuntime(options, "node's own"), options);
      if (round.kind !== "failed")
        return { way: way.kind, reason: "the runtime answers", heal: plannedIds(round), leave: leftIds(round) };
      // --after waits for a runtime; a dry run does not.
      const waits = mode === "after" ? "; boot --after waits for it until its deadline" : "";
      return { way: "failed", reason: `the runtime does not answer: ${round.reason}${waits}`, heal: [], leave: [] };
    }
  }
}

function plannedIds(round: Round): readonly string[] {
  return round.kind === "failed" ? [] : round.plan.actions.map(({ finding }) => finding.id);
}

/** Findings without a planned action. */
function leftIds(round: Exclude<Round, { kind: "failed" }>): readonly string[] {
  const planned = plannedIds(round);
  return foundIds(round).filter((id) => !planned.includes(id));
}

function foundIds({ seen }: Exclude<Round, { kind: "failed" }>): readonly string[] {
  return seen.diagnosis.findings.map(({ id }) => id);
}

async function missingAgentOf({ config }: RuntimeFiles, { observe }: RoundOptions): Promise<string | undefined> {
  const confDir = configuredConfDir(observe.hostRoot, config) ?? placesAt("").cniConfDir;
  return await missingAgent(observe, confDir, observe.timeoutMs);
}

/** Which ones those are is known only once the runtime has listed them. */
function shareOfKubelet({ hostRoot, noKube }: ObserveNodeOptions): string {
  const pods = resolveOnHost(hostRoot, `${placesAt("").kubeletRoot}/pods`, "follow");
  return noKube || !existsSync(pods) ? "" : "; those that need no repair are left to kubelet, which starts next";
}

/** From the records of a runtime: no runtime is started for it. */
async function comingBack({ root }: RuntimeFiles, observe: ObserveNodeOptions) {
  const facts = await observeOffline({ ...observe, containerdRoot: root, containerdVersion: undefined });
  const heal = classes.flatMap(({ id: of, healedAfterStart }) =>
    (healedAfterStart?.(facts) ?? []).map((id) => `${of}/${id}`),
  );
  const others = diagnoseOffline(facts).filter(({ class: of }) => classById(of)?.healedAfterStart === undefined);
  return { heal, leave: others.map(({ id }) => id) };
}

interface FoundBoot {
  readonly bootId: string;
  readonly marker: string;
}

function bootOf({ heal, runDir, mode }: BootOptions): FoundBoot {
  const boot = valueOr(readBoot({ root: heal.observe.hostRoot, now: new Date() }), undefined);
  return { bootId: boot?.id ?? "", marker: join(runDir, `boot-${mode}-${boot?.id ?? "unknown"}`) };
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

async function withinDeadline(options: BootOptions, found: FoundBoot): Promise<Done> {
  const { observe } = options.heal;
  const endsAt = performance.now() + Math.max(0, options.deadlineMs - CLOSING_MS);
  const remainingMs = (): number => Math.max(1, endsAt - performance.now());
  const deadline = AbortSignal.timeout(Math.ceil(remainingMs()));
  const round: RoundOptions = { ...options.heal, env: options.env, remainingMs, deadline, dryRun: false };
  try {
    const way = await chooseWay({ ...options, ...found, observe, deadline });
    switch (way.kind) {
      case "nothing":
        return { outcome: "nothing", reason: way.reason, healed: 0, left: [] };
      case "failed":
        return { outcome: "failed", reason: way.reason, healed: 0, left: [] };
      case "through-runtime":
        return await healAfterStart(options, round);
      case "caches-only":
        return await clearCaches(round, way.reason);
      case "borrow":
        return await healByBorrowing(options, way.files, round);
    }
  } catch (error) {
    return { outcome: "failed", reason: describeError(error), healed: 0, left: [] };
  }
}

/**
 * The runtime and every pod wait meanwhile, and a plugin may wait for an API server that starts after it: what is not
 * started by then is healed after the start.
 */
const SOFT_LIMIT_MS = 3000;

async function healByBorrowing(options: BootOptions, files: RuntimeFiles, round: RoundOptions): Promise<Done> {
  const borrowed = await borrowRuntime(files, join(options.runDir, "borrowed"), round.deadline);
  if (borrowed.kind === "failed") return await clearCaches(round, borrowed.reason);
  const { runtime } = borrowed;
  options.log(`borrowed ${files.binary} over ${files.root}`);
  let healed: Round;
  try {
    const observe = { ...round.observe, runtimeEndpoint: runtime.endpoint };
    const stop = AbortSignal.any([round.deadline, AbortSignal.timeout(SOFT_LIMIT_MS)]);
    const pipeline = throughRuntime({ ...round, observe }, "borrowed");
    healed = await unlessTooLate(healRound(pipeline, { ...round, stop }), round.deadline);
  } finally {
    await runtime.stop();
  }
  return verifiedByRecords(summary(healed), healed, files, round.observe.hostRoot);
}

/**
 * The temporary runtime listed no ghosts. Its database is read after it has stopped: sandboxes with a record that it did
 * not list are visible only there.
 */
function verifiedByRecords(done: Done, round: Round, files: RuntimeFiles, hostRoot: string): Done {
  if (round.kind === "failed" || done.outcome !== "healed") return done;
  const unverified = (why: string): Done => {
    return { ...done, outcome: "left", reason: `whether ghosts are left could not be verified: ${why}` };
  };
  const metadata = readMetadataFile({ hostRoot, containerdRoot: files.root });
  if (metadata.status === "absent") return done;
  if (metadata.status === "failed") return unverified(metadata.error.message);
  const { path, records, sandboxes, damage } = metadata.value;
  if (damage.length > 0) return unverified(`${path} is damaged`);
  const stored = [...records.filter(({ kind }) => kind === "sandbox"), ...sandboxes].map(({ id }) => id);
  const listed = new Set<string>(valueOr(round.seen.snapshot.cri, undefined)?.sandboxes.map(({ id }) => id));
  const ids = [...new Set(stored)].filter((id) => !listed.has(id));
  if (ids.length === 0) return done;
  const reason = `${ids.length} sandboxes have a record that ${files.binary} does not list; ${HEALS_AFTER}`;
  return { ...done, outcome: "left", reason, left: ids.map((id) => `record/${id}`) };
}

/** Without a runtime, files that would make every removal fail can still be moved, also after the deadline. */
async function clearCaches(round: RoundOptions, reason: string): Promise<Done> {
  const deadline = AbortSignal.timeout(CLOSING_MS);
  // Their number is part of the reason.
  const sinks = { ...round.sinks, result: () => undefined };
  const cleared = healedIn(await healRound(withoutRuntime(round, CLOSING_MS), { ...round, deadline, sinks }));
  const words = cleared === 0 ? "" : `; ${cleared} broken cache files were moved to quarantine`;
  return { outcome: "failed", reason: reason + words, healed: cleared, left: [] };
}

const RETRY_MS = 500;
/** While kubelet works through what died with the machine. */
const KUBELET_RETRY_MS = 5000;

/** Waits for the runtime, then heals until nothing is left that can be healed. */
async function healAfterStart({ stateDir, log }: BootOptions, options: RoundOptions): Promise<Done> {
  const { deadline, remainingMs } = options;
  let last: Round = { kind: "failed", reason: "the runtime did not answer before the deadline" };
  let healed = 0;
  let { timeoutMs } = options.observe;
  while (!deadline.aborted) {
    const pipeline = throughRuntime({ ...options, observe: { ...options.observe, timeoutMs } }, "node's own");
    last = await unlessTooLate(healRound(pipeline, options), deadline);
    if (last.kind !== "failed") {
      healed += healedIn(last);
      await noteRuntime(stateDir, last.seen.snapshot.runtime).catch((error: unknown) =>
        log(`the runtime's version could not be written down: ${describeError(error)}`),
      );
      const followed = leftToKubelet(last).length;
      if (foundIds(last).length === 0 || (healedIn(last) === 0 && followed === 0)) {
        // A node with tens of thousands of processes takes longer to read than the timeout of a scan, and here there is time.
        const isWorthMore = unreadSources(last.seen.snapshot).length > 0 && 2 * timeoutMs < remainingMs();
        if (!isWorthMore) return { ...summary(last), healed };
        timeoutMs *= 2;
      } else if (healedIn(last) === 0)
        await sleep(KUBELET_RETRY_MS, undefined, { signal: deadline }).catch(() => undefined);
    }
    await sleep(RETRY_MS);
  }
  return { ...summary(last), healed };
}

function unlessTooLate(healing: Promise<Round>, deadline: AbortSignal): Promise<Round> {
  const late = new Promise<Round>((resolve) => {
    const giveUp = (): void => resolve({ kind: "failed", reason: "the deadline came before healing was done" });
    if (deadline.aborted) giveUp();
    else deadline.addEventListener("abort", giveUp, { once: true });
  });
  return Promise.race([healing, late]);
}

function healedIn(round: Round): number {
  return round.kind === "healed" ? round.seen.results.filter(({ outcome }) => outcome === "healed").length : 0;
}

function summary(round: Round): Done {
  if (round.kind === "failed") return { outcome: "failed", reason: round.reason, healed: 0, left: [] };
  const followed = new Set(leftToKubelet(round));
  const left = foundIds(round).filter((id) => !followed.has(id));
  const [unread] = unreadSources(round.seen.snapshot);
  if (left.length === 0 && unread !== undefined) {
    const reason = `whether ghosts are left is not known: ${unread}`;
    return { outcome: "failed", reason, healed: healedIn(round), left };
  }
  const note = round.kind === "planned" ? round.note : undefined;
  const dead = followed.size === 0 ? "" : `; ${followed.size} dead sandboxes need no repair and are left to kubelet`;
  const reason = (note ?? (left.length === 0 ? "no ghosts are left" : `${left.length} findings are left`)) + dead;
  return { outcome: left.length === 0 ? "healed" : "left", reason, healed: healedIn(round), left };
}

/** The report and the marker of this boot. A full disk must not fail a boot: they are written to /run instead. */
async function keep(report: BootReport, options: BootOptions, marker: string): Promise<void> {
  const inRun = join(options.runDir, "boot.json");
  const whole = withEarlierSteps(report, readBootReport(inRun));
  // The service was restarted: what the boot has healed stays the report.
  if (report.outcome === "nothing" && whole.earlier !== undefined) return;
  const text = `${JSON.stringify(whole, undefined, 2)}\n`;
  mkdirSync(options.runDir, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(inRun, text, { mode: 0o600 });
    // The next start retries a failed boot, and one that had nothing to do.
    if (report.outcome === "healed" || report.outcome === "left") writeFileSync(marker, "");
    if (report.outcome === "nothing") return;
    await writeDurably(join(options.stateDir, "boot.json"), text);
  } catch (error) {
    options.log(`the report of this boot could not be kept: ${describeError(error)}`);
  }
}
