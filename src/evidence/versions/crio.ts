import { inRange, parseVersion, type Version, type VersionRange } from "./version.ts";

/** A failed DEL still marks the network as stopped: the second stop succeeds, and what the plugin held may leak. */
const PASSES_ON_SECOND_STOP: readonly VersionRange[] = [
  { line: "1.32", from: 8 },
  { line: "1.33", from: 4 },
];
const PASSES_FROM_MINOR = 34;
const TOLERATES_CORRUPT_RESULT_FROM_MINOR = 31;

export interface CrioBehaviour {
  readonly version: Version;
  /** Whether a permanently failing DEL blocks the removal of a sandbox forever. */
  readonly delErrorBlocks: boolean;
  /** libcni before 1.2.0, in CRI-O up to 1.30, fails DEL on an unparsable cached result. */
  readonly corruptResultBlocks: boolean;
}

export function crioBehaviour(text: string): CrioBehaviour | undefined {
  const version = parseVersion(text);
  if (version === undefined || version.major < 1) return undefined;
  const isBefore = (minor: number): boolean => version.major === 1 && version.minor < minor;
  return {
    version,
    delErrorBlocks: isBefore(PASSES_FROM_MINOR) && !PASSES_ON_SECOND_STOP.some((range) => inRange(version, range)),
    corruptResultBlocks: isBefore(TOLERATES_CORRUPT_RESULT_FROM_MINOR),
  };
}
