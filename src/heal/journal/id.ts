declare const brand: unique symbol;

/** Names one journal entry and its directory in quarantine: nine characters of time, a dash, four of chance. */
export type JournalId = string & { readonly [brand]: "JournalId" };

const FORM = /^[0-9a-z]{9}-[0-9a-z]{4}$/;

/** The only way in from outside. An id becomes a path component, so nothing else may pass. */
export function isJournalId(text: string): text is JournalId {
  return FORM.test(text);
}

/** When the entry was begun: the id's first part. */
export function timeOf(id: JournalId): Date {
  return new Date(Number.parseInt(id.slice(0, 9), 36));
}

/**
 * A source of ids that sort by the time of their making. Within one source they always ascend, even when the clock
 * steps back; between two processes in the same millisecond the random part keeps them apart.
 */
export function journalIds(clock: () => Date, random: () => number): () => JournalId {
  let last = 0;
  return () => {
    last = Math.max(clock().getTime(), last + 1);
    const time = last.toString(36).padStart(9, "0");
    const chance = Math.floor(random() * 36 ** 4)
      .toString(36)
      .padStart(4, "0");
    const id = `${time}-${chance}`;
    if (!isJournalId(id)) throw new RangeError(`The clock or the random source is out of range: ${id}`);
    return id;
  };
}
