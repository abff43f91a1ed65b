/** The world of a command, as a parameter: tests give their own. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdoutIsTerminal: boolean;
  readonly stdinIsTerminal: boolean;
  readonly columns: number;
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/** Colour only for people: a terminal, and nobody who said no. See no-color.org. */
export function wantsColour(io: Io): boolean {
  return io.stdoutIsTerminal && !io.env["NO_COLOR"] && io.env["TERM"] !== "dumb";
}
