/** Seconds between the first of January of year 1, where Go counts from, and 1970. */
const SECONDS_TO_UNIX = 62_135_596_800n;
/** What Date can hold. */
const MAX_DATE_MS = 8_640_000_000_000_000;

/**
 * A time as Go's MarshalBinary writes it: version, seconds since year 1, nanoseconds, offset of the zone in minutes.
 * The zone is only how it would be shown.
 */
export function parseGoTime(bytes: Uint8Array): Date | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = LENGTH_OF_VERSION.get(bytes[0] ?? 0);
  if (length === undefined || bytes.length !== length) return undefined;
  const seconds = view.getBigInt64(1) - SECONDS_TO_UNIX;
  // As the messages' timestamps are read: the last nanoseconds of a millisecond must fall on the same side of it.
  const ms = Number(seconds) * 1000 + view.getInt32(9) / 1_000_000;
  return Math.abs(ms) > MAX_DATE_MS ? undefined : new Date(ms);
}

/** The second version adds the seconds of the zone's offset. */
const LENGTH_OF_VERSION: ReadonlyMap<number, number> = new Map([
  [1, 15],
  [2, 16],
]);
