import { once } from "node:events";
import type { Io } from "./io.ts";

/** Asks once; anything but a clear yes is a no, including the end of the input. */
export async function askYesNo(question: string, io: Io): Promise<"yes" | "no"> {
  const { createInterface } = process.getBuiltinModule("node:readline/promises");
  // The terminal's own line editing is enough, and keeps what was typed before the question.
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: false });
  try {
    const closed = once(lines, "close").then(() => "");
    const answer = await Promise.race([lines.question(`${question} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  } finally {
    lines.close();
    io.stdout("");
  }
}
