import { inRange, parseVersion, type Version, type VersionRange } from "./version.ts";

/** A failed DEL marks the network as stopped all the same: the second stop passes, and what the plugin held may leak. */
const PASSES_ON_SECOND_STOP: readonly VersionRange[] = [
  { line: "1.32", from: 8 },
  { line: "1.33", from: 4 },
];
const PASSES_FROM_MINOR = 34;

export interface CrioBehaviour {
  readonly version: Version;
  /** Whether a DEL that keeps failing blocks the removal of a sandbox for ever. */
  readonly delErrorBlocks: boolean;
}

export function crioBehaviour(text: string): CrioBehaviour | undefined {
  const version = parseVersion(text);
  if (version === undefined || version.major < 1) return undefined;
  const passes = version.major > 1 || version.minor >= PASSES_FROM_MINOR;
  return { version, delErrorBlocks: !passes && !PASSES_ON_SECOND_STOP.some((range) => inRange(version, range)) };
}
