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
export interface VersionRange {
  readonly line: string;
  readonly from?: number;
  readonly to?: number;
}

/** Whether the version is a patch release of the line (`1.6`) inside the range. */
export function inRange(version: Version, range: VersionRange): boolean {
  if (`${version.major}.${version.minor}` !== range.line) return false;
  return version.patch >= (range.from ?? 0) && version.patch <= (range.to ?? Number.POSITIVE_INFINITY);
}
