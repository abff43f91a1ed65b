import * as v from "valibot";
import { journalActionSchema } from "../../evidence/step.ts";

const journalId = v.custom<JournalId>((input) => typeof input === "string" && isJournalId(input));

/** The subject of the finding, only for messages and history; no decision uses it. */
const subject = v.looseObject({
  type: v.string(),
  sandboxId: v.optional(v.string()),
  name: v.optional(v.string()),
  path: v.optional(v.string()),
  pid: v.optional(v.number()),
  pod: v.optional(v.looseObject({ namespace: v.string(), name: v.string() })),
});

/** What started the run: the command line, the agent, or the boot hook. */
const ACTORS = ["cli", "agent", "boot"] as const;
export type Actor = (typeof ACTORS)[number];

const stamp = { at: v.string(), run: v.string(), boot: v.string() };

const entry = v.variant("event", [
  /** Announces a change; synced before the change is made. */
  v.object({
    event: v.literal("begin"),
    id: journalId,
    ...stamp,
    // A newer version may have others: no decision depends on it.
    by: v.fallback(v.optional(v.picklist(ACTORS)), undefined),
    finding: v.string(),
    class: v.string(),
    subject,
    action: journalActionSchema,
    /** What the finding was proven by, with its first entry in a run; only for people. */
    evidence: v.fallback(v.optional(v.array(v.object({ source: v.string(), fact: v.string() }))), undefined),
  }),
  v.object({
    event: v.literal("done"),
    id: journalId,
    ...stamp,
    outcome: v.picklist(["healed", "skipped", "failed", "refused"]),
    detail: v.optional(v.string()),
  }),
  /** Announces that a quarantined file is being put back. */
  v.object({ event: v.literal("undoing"), id: journalId, ...stamp }),
  v.object({ event: v.literal("undone"), id: journalId, ...stamp }),
  /** Its quarantined file is deleted permanently; written before the deletion. */
  v.object({ event: v.literal("pruned"), id: journalId, ...stamp }),
  /** A later run found the entry open and closed it. */
  v.object({
    event: v.literal("recovered"),
    id: journalId,
    ...stamp,
    how: v.picklist(["completed", "rolled-back", "undone", "interrupted", "lost"]),
    detail: v.string(),
  }),
  /** The previous line was truncated by a crash or a full disk. */
  v.object({ event: v.literal("resumed"), ...stamp }),
]);

export type JournalEntry = v.InferOutput<typeof entry>;
export type BeginEntry = Extract<JournalEntry, { event: "begin" }>;
export type DoneOutcome = Extract<JournalEntry, { event: "done" }>["outcome"];
export type RecoveredHow = Extract<JournalEntry, { event: "recovered" }>["how"];
export type JournalSubject = v.InferOutput<typeof subject>;

/**
 * - `newer-version`: a complete entry in the journal's format, with content that only a newer version knows.
 * - `damaged`: anything else.
 */
export type UnreadableCode = "newer-version" | "damaged";

export type ParsedLine =
  | { readonly ok: true; readonly entry: JournalEntry }
  | { readonly ok: false; readonly code: UnreadableCode; readonly reason: string; readonly id?: JournalId };

/** The fields of every entry in every version. */
const envelope = v.looseObject({ event: v.string(), id: v.optional(journalId), ...stamp });

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Never throws, whatever the bytes. */
export function parseEntry(line: Uint8Array): ParsedLine {
  let json: unknown;
  try {
    json = JSON.parse(strictUtf8.decode(line));
  } catch {
    return { ok: false, code: "damaged", reason: "not a complete JSON object" };
  }
  const parsed = v.safeParse(entry, json);
  if (parsed.success) return { ok: true, entry: parsed.output };
  const [issue] = parsed.issues;
  const where = `${v.getDotPath(issue) ?? "object"}: ${issue.message}`;
  const framed = v.safeParse(envelope, json);
  if (!framed.success) return { ok: false, code: "damaged", reason: `not a journal entry (${where})` };
  const reason = `written by a newer version of unghost (${where})`;
  return { ok: false, code: "newer-version", reason, id: framed.output.id };
}

export function formatEntry(value: JournalEntry): string {
  return `${stringify(value)}\n`;
}

/** JSON for the journal and the reports: big numbers as decimal strings. */
export function stringify(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_key, field: unknown) => (typeof field === "bigint" ? field.toString() : field),
    indent,
  );
}

declare const brand: unique symbol;

/** The id of a journal entry and of its directory in quarantine: nine characters of time, a dash, four random ones. */
export type JournalId = string & { readonly [brand]: "JournalId" };

const FORM = /^[0-9a-z]{9}-[0-9a-z]{4}$/;

/** The only validation of external input. An id becomes a path component, so nothing else may pass. */
export function isJournalId(text: string): text is JournalId {
  return FORM.test(text);
}

/** When the entry was started: the id's first part. */
export function timeOf(id: JournalId): Date {
  return new Date(Number.parseInt(id.slice(0, 9), 36));
}

/**
 * Ids that sort by creation time. Within one process they always ascend, even if the clock steps back; between two
 * processes in the same millisecond the random part distinguishes them.
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
