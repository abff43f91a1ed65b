import { inRange, parseVersion, type Version, type VersionRange } from "./version.ts";

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

export interface ContainerdBehaviour {
  readonly version: Version;
  readonly stop: StopBehaviour;
  /** libcni before 1.2.0 fails DEL on an unparsable cached result. */
  readonly corruptResultBlocks: boolean;
  readonly fatalWithoutMetadata: boolean;
  readonly leaksRecords: boolean;
  /** Records are written before any plugin is called, so an id without a record is not being created. */
  readonly recordsBeforeAdd: boolean;
}

/** Returns undefined for text that is not a version, and for release lines older than any that was checked. */
export function containerdBehaviour(text: string): ContainerdBehaviour | undefined {
  const version = parseVersion(text);
  if (version === undefined || version.major < 1 || (version.major === 1 && version.minor < 6)) return undefined;
  const within = (ranges: readonly VersionRange[]): boolean => ranges.some((range) => inRange(version, range));
  return {
    version,
    stop: stopBehaviour(within),
    corruptResultBlocks: version.major === 1,
    fatalWithoutMetadata: within(FATAL_WITHOUT_METADATA),
    leaksRecords: within(LEAKS_RECORDS),
    recordsBeforeAdd: version.major > 1 || version.minor > 6 || version.patch >= 9,
  };
}

function stopBehaviour(within: (ranges: readonly VersionRange[]) => boolean): StopBehaviour {
  if (within(BLOCKS)) return "del-error-blocks";
  if (within(SKIPS)) return "del-skipped-without-result";
  return "del-tried-error-ignored-without-result";
}
