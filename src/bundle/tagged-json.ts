/** JSON that keeps dates, big integers, maps and sets: a snapshot has all of them. */

/** Deeper than any snapshot; a hostile document must not exhaust the stack. */
export const MAX_DEPTH = 40;

const TAGS = ["$date", "$bigint", "$map", "$set"] as const;
type Tag = (typeof TAGS)[number];

export function toTagged(value: unknown): unknown {
  if (typeof value === "bigint") return { $bigint: value.toString() };
  if (value instanceof Date) return { $date: Number.isNaN(value.getTime()) ? null : value.toISOString() };
  if (value instanceof Map) return { $map: [...value].map(([key, one]) => [toTagged(key), toTagged(one)]) };
  if (value instanceof Set) return { $set: [...value].map(toTagged) };
  if (Array.isArray(value)) return value.map(toTagged);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toTagged(one)]));
}

/** Throws a SyntaxError for what toTagged never writes. */
export function fromTagged(value: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw new SyntaxError(`it is nested deeper than ${MAX_DEPTH} levels`);
  const inner = (one: unknown): unknown => fromTagged(one, depth + 1);
  if (Array.isArray(value)) return value.map(inner);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [first] = entries;
  const tag = TAGS.find((one) => one === first?.[0]);
  if (tag !== undefined && entries.length === 1) return untag(tag, first?.[1], inner);
  return Object.fromEntries(entries.map(([key, one]) => [key, inner(one)]));
}

const INTEGER = /^-?\d{1,20}$/;

function untag(tag: Tag, content: unknown, inner: (one: unknown) => unknown): unknown {
  if (tag === "$date") return new Date(typeof content === "string" ? content : Number.NaN);
  if (tag === "$bigint" && typeof content === "string" && INTEGER.test(content)) return BigInt(content);
  if (tag === "$set" && Array.isArray(content)) return new Set(content.map(inner));
  if (tag === "$map" && Array.isArray(content)) return new Map(content.map((pair) => asPair(pair, inner)));
  throw new SyntaxError(`${tag} has a value of the wrong form`);
}

function asPair(pair: unknown, inner: (one: unknown) => unknown): readonly [unknown, unknown] {
  if (!Array.isArray(pair) || pair.length !== 2) throw new SyntaxError("$map has an entry of the wrong form");
  return [inner(pair[0]), inner(pair[1])];
}
