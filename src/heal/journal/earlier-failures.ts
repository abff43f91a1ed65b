import type { RawLine } from "../../host/safe-fs.ts";
import { findStateDir } from "../state/state-dir.ts";
import { foldHistory, readJournal } from "./reader.ts";
import { headOf } from "./unsettled.ts";

/** How often healing a finding has failed. */
export interface EarlierFailures {
  readonly times: number;
  readonly lastAt: string;
  /** Of the last one. */
  readonly reason?: string;
  /** When the agent tries again; ISO. */
  readonly nextTryAt?: string | undefined;
  /** The agent's budget of tries is spent. */
  readonly givenUp?: boolean | undefined;
}

/** By finding. */
export type FailuresByFinding = ReadonlyMap<string, EarlierFailures>;

/**
 * By finding. A run counts once, however many steps of it failed. The journal is read twice, because only the entries
 * of failures are parsed.
 */
export async function earlierFailures(stateDir: string, uid: number): Promise<FailuresByFinding> {
  const found = await findStateDir(stateDir, uid);
  if (!found.ok || found.value === undefined) return new Map();
  const { journal } = found.value;
  const failed = new Set<string>();
  const note = (line: RawLine): boolean => {
    if (textOf(line).includes('"outcome":"failed"')) failed.add(headOf(line).id);
    return false;
  };
  await foldHistory(readJournal(journal, note));
  if (failed.size === 0) return new Map();
  const { records } = await foldHistory(readJournal(journal, (line) => failed.has(headOf(line).id)));
  const byFinding = Map.groupBy(
    records.filter(({ outcome }) => outcome === "failed"),
    ({ finding }) => finding,
  );
  return new Map(
    [...byFinding].map(([finding, attempts]) => {
      const last = attempts.at(-1);
      const times = new Set(attempts.map(({ run }) => run)).size;
      return [finding, { times, lastAt: last?.endedAt ?? last?.at ?? "", reason: last?.detail }];
    }),
  );
}

function textOf({ bytes, isCut }: RawLine): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, isCut ? 0 : bytes.length).toString("latin1");
}
