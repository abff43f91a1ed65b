import { stateDirLayout } from "../../heal/files/state-dir.ts";
import { readHistory } from "../../heal/journal/history.ts";
import { printable } from "../../host/printable.ts";
import { ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { resolveSettings } from "../settings.ts";
import { stateDirOf } from "../state.ts";
import { candidates, podsByLogDirectories } from "./candidates.ts";

/** Answers a shell's completion script: one word a line, nothing where anything goes wrong. */
export async function runComplete(words: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const settings = await resolveSettings({}, io);
    const found = await candidates(words, {
      journalIds: async () =>
        (await readHistory(stateDirLayout(stateDirOf(settings)).journal)).records.map(({ id }) => id),
      pods: () => podsByLogDirectories(settings.hostRoot),
    });
    io.stdout(found.map((word) => `${printable(word)}\n`).join(""));
  } catch {
    // The prompt is no place for a message.
  }
  return ExitCode.ok;
}
