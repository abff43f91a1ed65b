import { posix } from "node:path";
import { hostFiles } from "../boot/install/detect.ts";
import { findInstalled } from "../boot/install/plan.ts";
import { diagnoseOffline } from "../diagnose/offline.ts";
import type { Finding } from "../evidence/finding.ts";
import { failureOf, runChild } from "../host/child.ts";
import { CONTAINERD_ROOTS } from "../host/distributions.ts";
import { statfsSync } from "../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { procLink } from "../host/proc.ts";
import { entriesIn, statsOf } from "../host/safe-fs.ts";
import { valueOr } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import { readCniConfFiles } from "../node/cni-conf-files.ts";
import { configuredBinDirs, unparsableConfigs } from "../node/containerd-config.ts";
import { observeOffline } from "../node/observe-offline.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import { shimRisk } from "./multus-shim.ts";
import type { RestartFacts } from "./restart.ts";

export interface RestartPlaces {
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  readonly timeoutMs: number;
}

/** Reads what a start of the runtime would read. Starts nothing but `containerd --version`. */
export async function readRestartFacts(
  snapshot: Snapshot,
  present: readonly Finding[],
  { hostRoot: root, cniCacheDir, timeoutMs }: RestartPlaces,
): Promise<RestartFacts> {
  const { runtime, cni } = snapshot;
  const pid = runtime.process?.pid;
  const nextVersion = await versionOfNextStart(snapshot, root, timeoutMs);
  const offline = await observeOffline({
    hostRoot: root,
    containerdRoot: undefined,
    containerdVersion: nextVersion,
    cniCacheDir,
    timeoutMs,
  });
  const conf = valueOr(cni.conf, undefined);
  return {
    snapshot,
    present,
    metadata: offline.metadata,
    stored: diagnoseOffline(offline),
    nextVersion,
    unparsable: runtime.name.startsWith("containerd") ? await unparsableConfigs(root, pid) : [],
    binDirs: await configuredBinDirs(root, pid),
    confFiles: conf === undefined ? [] : readCniConfFiles(root, conf.dir, conf.binDirs),
    shim: shimRisk(root, conf, snapshot.multusDaemon),
    full: fullFileSystems(root),
    ...manifestFiles(snapshot, root),
    bootHook: findInstalled(hostFiles(root)).some(({ isOurs, path }) => isOurs && HOOK.test(path)),
  };
}

/** The drop-ins, units and scripts of the hook, not those of agent and keeper. */
const HOOK = /unghost-boot|\/10-unghost\.conf$/;

const REPLACED = / \(deleted\)$/;
const VERSION_MS = 5000;

/** An upgrade replaces the program, and the running one stays until the restart. */
async function versionOfNextStart({ runtime }: Snapshot, root: string, timeoutMs: number): Promise<string | undefined> {
  const { process, version } = runtime;
  if (process === undefined) return version === "" ? undefined : version;
  const program = procLink(hostPath(root, `/proc/${process.pid}/exe`));
  if (program === undefined) return undefined;
  if (!REPLACED.test(program)) return version;
  const path = program.replace(REPLACED, "");
  // In a container the node's program may not find its libraries, and one that others may write is not run.
  if (root !== "/" || provePath(root, path).kind === "refused") return undefined;
  const asked = await runChild([path, "--version"], { timeoutMs: Math.min(VERSION_MS, timeoutMs) });
  return failureOf(asked) === undefined ? /\bv?(\d+\.\d+\.\d+\S*)/.exec(asked.stdout)?.[1] : undefined;
}

/** A start of containerd grows its database by a few pages. */
const NEEDED_BYTES = 16 * 1024 * 1024;

function fullFileSystems(root: string): readonly string[] {
  return CONTAINERD_ROOTS.flatMap((dir) => {
    const path = resolveOnHost(root, dir, "follow");
    if (statsOf(path)?.isDirectory() !== true) return [];
    const { bsize, bavail, files, ffree } = statfsSync(path);
    if (bsize * bavail < NEEDED_BYTES) return [`${dir}: ${Math.floor((bsize * bavail) / 1024)} KiB are free`];
    return files > 0 && ffree === 0 ? [`${dir}: no inode is free`] : [];
  });
}

function manifestFiles(
  { staticManifests }: Snapshot,
  root: string,
): Pick<RestartFacts, "emptyManifests" | "otherManifestsUnread"> {
  const read = staticManifests === undefined ? [] : valueOr(staticManifests, []);
  const dirs = new Set(read.map(({ path }) => posix.dirname(path)));
  const known = new Set(read.map(({ path }) => path));
  const others = [...dirs].flatMap((dir) =>
    entriesIn(resolveOnHost(root, dir, "follow"))
      .filter(({ name, kind }) => kind === "file" && /^[^.].*\.(?:yaml|yml|json)$/.test(name))
      .map(({ name }) => posix.join(dir, name))
      .filter((path) => !known.has(path)),
  );
  const emptyManifests = others.filter((path) => statsOf(resolveOnHost(root, path, "follow"))?.size === 0);
  return { emptyManifests, otherManifestsUnread: others.length > emptyManifests.length };
}
