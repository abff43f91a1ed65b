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
