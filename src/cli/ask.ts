import { createInterface } from "node:readline/promises";
import type { Io } from "./io.ts";

/** Asks once; anything but a clear yes is a no. */
export async function askYesNo(question: string, io: Io): Promise<"yes" | "no"> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await lines.question(`${question} [y/N] `);
    return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  } finally {
    lines.close();
    io.stdout("");
  }
}
