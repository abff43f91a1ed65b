import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { compareVersions, parseVersion, type Version } from "../evidence/versions.ts";
import { failureOf, runChild } from "../host/child.ts";
import { readMetadataFile } from "../node/metadata.ts";
import { readProcessTable } from "../node/process-table.ts";
import { readProcesses } from "../node/processes.ts";
import { findNodeRuntime } from "../node/runtime-process.ts";
import { answersCri } from "../runtime/cri.ts";
import { lastSeenRuntime, readBootReport } from "./boot-report.ts";
import { doubtOf } from "./borrowed-runtime.ts";
import { type Asked, findRuntimeFiles, type RuntimeFiles } from "./runtime-files.ts";

/**
 * How this boot can be healed.
 * - `nothing`: there is no reason to act.
 * - `through-runtime`: the node's own runtime is up, or is waited for.
 * - `borrow`: it is not up yet, and its program can be started temporarily with its records.
 * - `caches-only`: no runtime can be used; broken cache files can be quarantined.
 */
export type Way =
  | { readonly kind: "nothing" | "failed" | "caches-only"; readonly reason: string }
  | { readonly kind: "through-runtime" }
  | { readonly kind: "borrow"; readonly files: RuntimeFiles };

interface WayOptions {
  readonly mode: "before" | "after";
  readonly force: boolean;
  readonly asked: Asked;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stateDir: string;
  readonly observe: ObserveNodeOptions;
  /** Exists if the hook has run in this boot. */
  readonly marker: string;
  readonly bootId: string;
  readonly deadline: AbortSignal;
}

/** A running runtime answers at once. */
const PROBE_MS = 1000;

export const HEALS_AFTER = "`unghost boot --after` heals once the runtime is up";

/** Reads only: a dry run reports what a boot decides. */
export async function chooseWay(options: WayOptions): Promise<Way> {
  const { hostRoot, timeoutMs, runtimeEndpoint: endpoint } = options.observe;
  if (existsSync(options.marker) && !options.force) {
    return { kind: "nothing", reason: "it has already run in this boot (--force runs it again)" };
  }
  if (options.mode === "after") return { kind: "through-runtime" };
  const last = readBootReport(join(options.stateDir, "boot.json"));
  // A boot that failed may be retried; running pods are checked for in any case.
  const seen = options.force || last?.outcome === "failed" ? undefined : last?.boot;
  const files = findRuntimeFiles(hostRoot, options.asked, options.env["PATH"]);
  // Runs concurrently with the other checks before a runtime is started.
  using objection = files.kind === "none" ? undefined : startObjection(files.files, options);
  const sameBoot = await whySameBoot(hostRoot, { current: options.bootId, last: seen }, options.deadline);
  if (sameBoot !== undefined) return { kind: "nothing", reason: sameBoot };
  const found = await findNodeRuntime({ endpoint, env: options.env, hostRoot, timeoutMs });
  if (found.kind === "refused") return { kind: "failed", reason: `${found.message}. ${found.next}` };
  if (found.kind === "found" && (await answersCri(found.path, { timeoutMs: PROBE_MS })))
    return { kind: "through-runtime" };
  if (files.kind === "none") return { kind: "caches-only", reason: files.reason };
  const objected = await objection?.answer;
  if (objected === undefined) return { kind: "borrow", files: files.files };
  return { kind: "caches-only", reason: `no containerd was borrowed: ${objected}; ${HEALS_AFTER}` };
}

/**
 * Checks whether containerd may be started; disposing cancels the check. Reading the version runs the program: only a
 * program that root alone can change is run, and borrowRuntime refuses others.
 */
function startObjection(
  files: RuntimeFiles,
  options: WayOptions,
): { readonly answer: Promise<string | undefined>; [Symbol.dispose](): void } {
  const giveUp = new AbortController();
  const signal = AbortSignal.any([options.deadline, giveUp.signal]);
  const isTrusted = doubtOf(files) === undefined;
  const answer = isTrusted ? objectionToBorrowing(files, options, signal) : Promise.resolve(undefined);
  // A cancelled check is not waited for.
  answer.catch(() => undefined);
  return { answer, [Symbol.dispose]: () => giveUp.abort() };
}

/**
 * Why this may be a restart of the service, which runs the same hook while pods are running. Returns undefined if no
 * process of an earlier runtime is left. The stored boot id is not enough, because it is missing on the first run.
 */
async function whySameBoot(
  root: string,
  boot: { readonly current: string; readonly last: string | undefined },
  deadline: AbortSignal,
): Promise<string | undefined> {
  if (boot.current !== "" && boot.current === boot.last) {
    return "this boot was handled before: the service restarted, the machine did not";
  }
  const table = await readProcessTable({ root, signal: deadline });
  const processes = await readProcesses({ root, table, signal: deadline });
  if (processes.status !== "read") return "the process table cannot be read, so pods may be alive";
  const { shims, byContainer } = processes.value;
  const [shim] = shims;
  if (shim !== undefined) return `pods are alive: pid ${shim.pid} is the shim of ${shim.id}`;
  const [container] = byContainer;
  return container && `containers are alive: pid ${container[1][0]} runs in ${container[0]}`;
}

/** The 2.x sandbox store: an older containerd neither lists nor removes its records, and reports success. */
const SANDBOX_STORE_SINCE: Version = { major: 2, minor: 0, patch: 0 };

const VERSION_MS = 5000;

/**
 * Why a containerd must not be started with these records: it is older than the one that wrote them, or that is
 * unknown. An older one ignores unknown records and reports success. Returns undefined if it may be started.
 */
async function objectionToBorrowing(
  files: RuntimeFiles,
  { observe: { hostRoot }, stateDir }: WayOptions,
  signal: AbortSignal,
): Promise<string | undefined> {
  const asked = runChild([files.binary, "--version"], { timeoutMs: VERSION_MS, signal });
  const metadata = readMetadataFile({ hostRoot, containerdRoot: files.root });
  const answer = await asked;
  const version = failureOf(answer) === undefined ? versionIn(answer.stdout) : undefined;
  // An operator who passes the program vouches for it, unless it is known to be too old.
  const mustBeKnown = files.namedBy !== "operator";
  if (version === undefined) {
    return mustBeKnown
      ? `the version of ${files.binary} is unknown (--version ${failureOf(answer) ?? "prints none"})`
      : undefined;
  }
  if (metadata.status === "failed" && mustBeKnown) {
    return `the containerd version that wrote the records is unknown: ${metadata.error.message}`;
  }
  const usesSandboxStore = metadata.status === "read" && metadata.value.sandboxes.length > 0;
  if (usesSandboxStore && compareVersions(version, SANDBOX_STORE_SINCE) < 0) {
    return `${files.binary} is containerd ${words(version)}, and the records were written by 2.0 or later (they use its sandbox store)`;
  }
  const seen = lastSeenRuntime(stateDir);
  const wrote = seen?.name === "containerd" ? parseVersion(seen.version) : undefined;
  if (wrote !== undefined && compareVersions(version, wrote) < 0) {
    return `${files.binary} is containerd ${words(version)}, and ${words(wrote)} ran on this node last`;
  }
  return undefined;
}

/** `containerd github.com/containerd/containerd v1.7.11-k3s2 <commit>` */
function versionIn(output: string): Version | undefined {
  const [, , text] = output.trim().split(/\s+/);
  return output.startsWith("containerd ") ? parseVersion(text ?? "") : undefined;
}

function words({ major, minor, patch }: Version): string {
  return `${major}.${minor}.${patch}`;
}
