import { once } from "node:events";

/** The environment of a command, injected by tests. */
export interface Io {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdoutIsTerminal: boolean;
  readonly stdinIsTerminal: boolean;
  readonly columns: number;
  /** Missing in a pipe, where nothing may be truncated to a width. */
  readonly screenColumns?: number;
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/**
 * Colour only on a terminal, unless NO_COLOR is set (no-color.org). FORCE_COLOR is for programs that show our output on
 * their own terminal.
 */
export function wantsColour(io: Pick<Io, "env" | "stdoutIsTerminal">): boolean {
  if (io.env["NO_COLOR"]) return false;
  const forced = io.env["FORCE_COLOR"];
  if (forced) return forced !== "0";
  return io.stdoutIsTerminal && io.env["TERM"] !== "dumb";
}

/** Users script against these. 0, 1 and 2 are also the protocol of a node-problem-detector plugin: frozen. */
export const ExitCode = {
  /** scan: healthy. heal: nothing left. explain: recognised. */
  ok: 0,
  /** scan: findings, or failures that kubelet reports (degraded). heal: something left. explain: not recognised. */
  findings: 1,
  /** The scan failed, or its result is unknown. */
  unknown: 2,
  /** Refused: needs --yes, paused, or a guard. agent: another agent runs on this node. */
  refused: 3,
  usage: 64,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

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
