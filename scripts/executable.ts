import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Names an attacker's or a careless environment could use to turn a root tool into a general JavaScript engine. */
const ENGINE_SWITCHES = [
  "BUN_BE_BUN",
  "BUN_OPTIONS",
  // A debugger's port, which takes any JavaScript.
  "BUN_INSPECT",
  // Prints every request with its headers, tokens included.
  "BUN_CONFIG_VERBOSE_FETCH",
];

export interface Executable {
  /** As `bun build --target` takes it. */
  readonly target: string;
  /** The engine that the program is put into: an executable of bun for that target. */
  readonly engine: string;
  readonly out: string;
}

/** Compiles src/main.ts into one file that needs no Node on the machine it runs on. The same source gives the same bytes. */
export function compileExecutable({ target, engine, out }: Executable): void {
  mkdirSync(dirname(out), { recursive: true });
  const draft = `${out}.new`;
  execFileSync(
    "node_modules/.bin/bun",
    [
      "build",
      "src/main.ts",
      "--compile",
      "--bytecode",
      "--minify",
      // A chunk a command: what a scan never runs need not be instantiated for it.
      "--splitting",
      "--format=esm",
      // Some packages name the directory they were built in.
      `--define=__dirname="/unghost"`,
      `--define=__filename="/unghost"`,
      `--define=UNGHOST_COMMIT="${commit()}"`,
      `--target=${target}`,
      `--compile-executable-path=${resolve(engine)}`,
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      `--outfile=${draft}`,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const binary = readFileSync(draft);
  for (const name of ENGINE_SWITCHES) disarm(binary, name);
  rmSync(draft);
  writeInPieces(draft, binary);
  renameSync(draft, out);
}

const PIECE_BYTES = 16 * 1024;

/**
 * As tar, dpkg and curl write it. The kernel keeps a file that was written at once in pages of 2 MB, and counts each of
 * them as memory of a process that reads one byte of it: 10 MB more for the agent.
 */
function writeInPieces(path: string, bytes: Buffer): void {
  const file = openSync(path, "wx", 0o755);
  try {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) writeFileSync(file, bytes.subarray(at, at + PIECE_BYTES));
  } finally {
    closeSync(file);
  }
}

/** Of the sources; a copy without a repository names its own in the environment. */
function commit(): string {
  const given = process.env["UNGHOST_COMMIT"];
  if (given) return given.replace(/[^0-9a-zA-Z.-]/g, "");
  try {
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return "unknown";
  }
}

/** The engine finds its switches by name. An entry of an environment ends at its first NUL, so none has this name. */
function disarm(engine: Buffer, name: string): void {
  const disarmed = Buffer.alloc(name.length);
  for (let at = engine.indexOf(name); at >= 0; at = engine.indexOf(name, at)) disarmed.copy(engine, at);
}
