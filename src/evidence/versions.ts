import type { MultusConfig } from "../node/types/cni.ts";

/** A release number; suffixes of distributions (`~ds1`, `-k3s1`) do not change behaviour and are dropped. */
export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch] = /^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?/.exec(text.trim()) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  return { major: Number(major), minor: Number(minor), patch: Number(patch ?? 0) };
}

export function compareVersions(one: Version, other: Version): number {
  return one.major - other.major || one.minor - other.minor || one.patch - other.patch;
}

/** `from` inclusive, `to` inclusive; a missing end is open within the release line that `from` or `to` names. */
interface VersionRange {
  readonly line: string;
  readonly from?: number;
  readonly to?: number;
}

/** Whether the version is a patch release of the line (`1.6`) inside the range. */
function inRange(version: Version, range: VersionRange): boolean {
  if (`${version.major}.${version.minor}` !== range.line) return false;
  return version.patch >= (range.from ?? 0) && version.patch <= (range.to ?? Number.POSITIVE_INFINITY);
}

/** What StopPodSandbox does when CNI DEL fails; it differs between patch releases. */
export type StopBehaviour =
  /** Any DEL error blocks stop and remove forever. */
  | "del-error-blocks"
  /** Without a recorded CNI result DEL is not called: nothing blocks, and addresses leak. */
  | "del-skipped-without-result"
  /** DEL is always called; its error is ignored only if no result was recorded. */
  | "del-tried-error-ignored-without-result";

const BLOCKS: readonly VersionRange[] = [
  { line: "1.6", to: 36 },
  { line: "1.7", to: 22 },
];
const SKIPS: readonly VersionRange[] = [
  { line: "1.6", from: 37 },
  { line: "1.7", from: 23, to: 30 },
  { line: "2.0", to: 7 },
  { line: "2.1", to: 6 },
  { line: "2.2", to: 1 },
];

/** containerd fails to start if a stored sandbox has no metadata. */
const FATAL_WITHOUT_METADATA: readonly VersionRange[] = [
  { line: "2.0", to: 5 },
  { line: "2.1", to: 3 },
];

/** A failure after the start of pause leaves a record; each retry adds one more with the same name. */
const LEAKS_RECORDS: readonly VersionRange[] = [
  { line: "2.0" },
  { line: "2.1" },
  { line: "2.2", to: 5 },
  { line: "2.3", to: 2 },
];

/** Returns undefined for text that is not a version, and for release lines older than any that was checked. */
export function containerdBehaviour(text: string) {
  const version = parseVersion(text);
  if (version === undefined || version.major < 1 || (version.major === 1 && version.minor < 6)) return undefined;
  const within = (ranges: readonly VersionRange[]): boolean => ranges.some((range) => inRange(version, range));
  return {
    stop: stopBehaviour(within),
    /** libcni before 1.2.0 fails DEL on an unparsable cached result. */
    corruptResultBlocks: version.major === 1,
    fatalWithoutMetadata: within(FATAL_WITHOUT_METADATA),
    leaksRecords: within(LEAKS_RECORDS),
    /** Records are written before any plugin is called, so an id without a record is not being created. */
    recordsBeforeAdd: version.major > 1 || version.minor > 6 || version.patch >= 9,
  };
}

export type ContainerdBehaviour = NonNullable<ReturnType<typeof containerdBehaviour>>;

function stopBehaviour(within: (ranges: readonly VersionRange[]) => boolean): StopBehaviour {
  if (within(BLOCKS)) return "del-error-blocks";
  if (within(SKIPS)) return "del-skipped-without-result";
  return "del-tried-error-ignored-without-result";
}

/** A failed DEL still marks the network as stopped: the second stop succeeds, and what the plugin held may leak. */
const PASSES_ON_SECOND_STOP: readonly VersionRange[] = [
  { line: "1.32", from: 8 },
  { line: "1.33", from: 4 },
];
const PASSES_FROM_MINOR = 34;
const TOLERATES_CORRUPT_RESULT_FROM_MINOR = 31;

export function crioBehaviour(text: string) {
  const version = parseVersion(text);
  if (version === undefined || version.major < 1) return undefined;
  const isBefore = (minor: number): boolean => version.major === 1 && version.minor < minor;
  return {
    /** Whether a permanently failing DEL blocks the removal of a sandbox forever. */
    delErrorBlocks: isBefore(PASSES_FROM_MINOR) && !PASSES_ON_SECOND_STOP.some((range) => inRange(version, range)),
    /** libcni before 1.2.0, in CRI-O up to 1.30, fails DEL on an unparsable cached result. */
    corruptResultBlocks: isBefore(TOLERATES_CORRUPT_RESULT_FROM_MINOR),
  };
}

/** Multus' behaviour by release; a node does not show its version, so these are printed and not compared. */
export const MULTUS = {
  /** Up to this version an unparsable cache fails every DEL; later ones succeed without calling a delegate. */
  corruptCacheFailsUpTo: "3.9",
  /** Since this major version an unparsable cache makes DEL succeed, which the marker relies on. */
  markerReadFrom: 4,
  /** Since this version the shim of the thick plugin answers DEL with success, whatever the daemon reports. */
  shimSwallowsDelErrorsFrom: "4.0.2",
  /** In this range, settings of a delegate's file-based configuration are stripped on DEL. */
  lossyConflist: { from: "4.2.1", to: "4.3.0" },
} as const;

/**
 * Differences between thin and thick multus. Both keep their caches in the same places: `<cniDir>/<sandbox id>` for the
 * delegates, `<cniDir>/results` for libcni's cache of each of them.
 */
export function multusVariant({ thick }: MultusConfig) {
  return {
    /**
     * Whether the runtime gets the error of a delegate's DEL, and so requires its success. The thick shim answers DEL
     * with success since 4.0.2, whatever the daemon reports: the removal is not blocked, and what the delegates held
     * leaks.
     */
    failedDelBlocksRemoval: !thick,
  };
}

/** The release lines that get fixes, as of November 2026; a newer line than these is not judged. */
const SUPPORTED = {
  containerd: { lines: ["2.3", "2.4"], upgrade: "containerd 2.3, which gets fixes until April 2028, or 2.4" },
  "cri-o": { lines: ["1.34", "1.35", "1.36"], upgrade: "the CRI-O of the cluster's Kubernetes release" },
} as const;

/** Which upgrade ends it; undefined for a release that is supported, newer than all that are known, or of another runtime. */
export function outOfSupport({ name, version: text }: { readonly name: string; readonly version: string }) {
  const supported = name === "containerd" || name === "cri-o" ? SUPPORTED[name] : undefined;
  const version = parseVersion(text);
  if (supported === undefined || version === undefined) return undefined;
  const oldest = parseVersion(supported.lines[0]);
  return oldest !== undefined && compareVersions(version, oldest) < 0 ? supported.upgrade : undefined;
}
