import type { Signature } from "../../classes/failure-class.ts";
import { classes, couldConcernSandboxes } from "../../classes/index.ts";
import { directionOf } from "../../logs/operation.ts";
import { subjectOf } from "../../logs/subject.ts";
import { normalise } from "../../logs/text.ts";
import type { NamedPod } from "../../node/types/ids.ts";

/** One class that a line may belong to. Several with `decides` mean that the line alone is ambiguous. */
export interface Match {
  readonly class: string;
  readonly confidence: number;
  readonly sandboxId?: string;
  readonly pod?: NamedPod;
  /** The original line. */
  readonly line: string;
  readonly decides?: string;
}

export type Level = NonNullable<Signature["level"]>;

type LevelledSignature = Signature & { readonly level: Level };

export interface Recognition {
  /** How specific the match is; undefined without a match. */
  readonly level: Level | undefined;
  readonly matches: readonly Match[];
}

interface Hit {
  readonly classId: string;
  readonly signature: LevelledSignature;
  readonly index: number;
}

/** Longer lines are read in pieces whose overlap is longer than any signature. */
const PIECE = 16_384;
const OVERLAP = 2_048;

/** A probe's message quotes the container's answer: it is no evidence about the node. */
const ORDINARY = /(?:readiness|liveness|startup) probe (?:failed|errored)/;

/** The classes of a line: causes first (innermost first), else wrappers, else symptoms (most likely first). */
export function recognise(line: string): readonly Match[] {
  return recogniseLevel(line).matches;
}

export function recogniseLevel(line: string): Recognition {
  if (!couldConcernSandboxes(line)) return { level: undefined, matches: [] };
  const hits = new Map<string, Hit>();
  let text = "";
  for (const [piece, start] of pieces(line)) {
    const normal = normalise(piece);
    if (ORDINARY.test(normal)) continue;
    const before = hits.size;
    collect(normal, start, hits);
    if (hits.size > before || text === "") text = normal;
  }
  const level = deepest(hits.values());
  if (level === undefined) return { level, matches: [] };
  const chosen = [...hits.values()].filter((hit) => hit.signature.level === level).toSorted(byDepth);
  const subject = subjectOf(text);
  const matches = chosen.map(({ classId, signature }) => ({
    class: classId,
    confidence: signature.confidence,
    ...subject,
    line,
    decides: signature.decides,
  }));
  return { level, matches };
}

function* pieces(line: string): Generator<readonly [string, number]> {
  if (line.length <= PIECE) {
    yield [line, 0];
    return;
  }
  for (let start = 0; start < line.length; start += PIECE - OVERLAP) yield [line.slice(start, start + PIECE), start];
}

/** Built with the first line. */
let catalogue: readonly { readonly id: string; readonly signatures: readonly LevelledSignature[] }[] | undefined;

/** Keeps the most specific signature of each class. */
function collect(text: string, start: number, hits: Map<string, Hit>): void {
  catalogue ??= classes.map(({ id, signatures }) => ({
    id,
    signatures: signatures().map((signature) => ({ ...signature, level: signature.level ?? "cause" })),
  }));
  for (const { id, signatures } of catalogue) {
    for (const signature of signatures) {
      const best = hits.get(id);
      if (best && !isBetter(signature, best.signature)) continue;
      const match = signature.pattern.exec(text);
      if (!match) continue;
      if (signature.within && !signature.within.test(text)) continue;
      if (signature.unless?.test(text)) continue;
      if (signature.during !== undefined && (directionOf(text) ?? signature.during) !== signature.during) continue;
      hits.set(id, { classId: id, signature, index: start + match.index });
    }
  }
}

const DEPTH: Readonly<Record<Level, number>> = { cause: 2, wrapper: 1, symptom: 0 };

export function depth(level: Level | undefined): number {
  return level === undefined ? -1 : DEPTH[level];
}

function isBetter(one: LevelledSignature, other: LevelledSignature): boolean {
  if (one.level !== other.level) return depth(one.level) > depth(other.level);
  return one.confidence > other.confidence;
}

function deepest(hits: Iterable<Hit>): Level | undefined {
  let level: Level | undefined;
  for (const { signature } of hits) {
    if (depth(signature.level) > depth(level)) level = signature.level;
  }
  return level;
}

/** Go wraps errors from left to right, so the innermost cause is last; otherwise the most likely comes first. */
function byDepth(one: Hit, other: Hit): number {
  const sureness = other.signature.confidence - one.signature.confidence;
  if (one.signature.level !== "cause") return sureness;
  return other.index - one.index || sureness;
}
