import type { Draft } from "./event-drafts.ts";
import { type EventPlace, eventPlace } from "./event-object.ts";

/** One event of the API, and what of it the API does not know yet. */
export interface Entry {
  readonly place: EventPlace;
  readonly draft: Draft;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** As the API has it; missing where it was never written. */
  readonly written?: { readonly count: number; readonly atMs: number };
  readonly unwritten: number;
  /** Not written again before that much time has passed. */
  readonly gapMs: number;
}

export interface EventBook {
  add(draft: Draft, node: string, at: Date): void;
  /** Entries with something to write, and those whose time has come first. */
  open(): readonly Entry[];
  dueMs(entry: Entry): number;
  written(entry: Entry, count: number, firstAt: Date): void;
  forget(entry: Entry): void;
}

const FIRST_GAP_MS = 5 * 60_000;
/** The API forgets an event after an hour: one that goes on is repeated about that often. */
const LONGEST_GAP_MS = 60 * 60_000;
/** A node has fewer pods than this, and each is one story. */
const MOST_ENTRIES = 300;

/** Counts what happens again on the event that is there, ever more seldom, in place of making new ones. */
export function eventBook(clock: () => number): EventBook {
  const entries = new Map<string, Entry>();
  const keyOf = ({ namespace, name }: EventPlace): string => `${namespace}/${name}`;
  const dueMs = ({ written, gapMs }: Entry): number => (written === undefined ? 0 : written.atMs + gapMs);

  return {
    dueMs,
    add: (draft, node, at) => {
      const place = eventPlace(draft, node);
      const before = entries.get(keyOf(place));
      // Put at the end: what was not heard of for longest is forgotten first.
      entries.delete(keyOf(place));
      entries.set(keyOf(place), {
        place,
        draft,
        firstAt: before?.firstAt ?? at,
        lastAt: at,
        ...(before?.written === undefined ? {} : { written: before.written }),
        unwritten: (before?.unwritten ?? 0) + draft.count,
        gapMs: before?.gapMs ?? FIRST_GAP_MS,
      });
      const [oldest] = entries.keys();
      if (entries.size > MOST_ENTRIES && oldest !== undefined) entries.delete(oldest);
    },
    open: () =>
      [...entries.values()]
        .filter(({ unwritten }) => unwritten > 0)
        .toSorted((one, other) => dueMs(one) - dueMs(other)),
    written: (entry, count, firstAt) => {
      const gapMs = entry.written === undefined ? entry.gapMs : Math.min(entry.gapMs * 2, LONGEST_GAP_MS);
      const told = { ...entry, firstAt, written: { count, atMs: clock() }, gapMs };
      const unwritten = (entries.get(keyOf(entry.place))?.unwritten ?? entry.unwritten) - entry.unwritten;
      entries.set(keyOf(entry.place), { ...told, unwritten });
    },
    forget: ({ place }) => {
      entries.delete(keyOf(place));
    },
  };
}
