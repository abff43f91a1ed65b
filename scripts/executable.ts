import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { launcherFor } from "./launcher.ts";
import { publishedAt } from "./release/published-at.ts";
import { withoutSignature } from "./release/unsigned-mach-o.ts";

/** Variables that could turn a root tool into a general JavaScript engine. */
const ENGINE_SWITCHES = [
  "BUN_BE_BUN",
  "BUN_OPTIONS",
  // Opens a debugger port, which runs any JavaScript.
  "BUN_INSPECT",
  // Prints every request with its headers, including tokens.
  "BUN_CONFIG_VERBOSE_FETCH",
];

export interface Executable {
  /** The value of `bun build --target`. */
  readonly target: string;
  /** The engine: bun's executable for that target. */
  readonly engine: string;
  readonly out: string;
}

/** Compiles src/main.ts into one file that needs no Node. The build is reproducible. */
export async function compileExecutable({ target, engine, out }: Executable): Promise<void> {
  const isForNodes = target.startsWith("bun-linux-");
  const launcher = isForNodes ? await launcherFor(target.includes("arm64") ? "arm64" : "x64") : undefined;
  mkdirSync(dirname(out), { recursive: true });
  const draft = `${out}.new`;
  const disarmed = `${out}.engine`;
  writeFileSync(disarmed, disarmedEngine(engine), { mode: 0o755 });
  execFileSync(
    "node_modules/.bin/bun",
    [
      "build",
      "src/main.ts",
      "--compile",
      // Bytecode is made by the engine of this machine. It was never shown to fit that of another system.
      ...(isForNodes ? ["--bytecode"] : []),
      // A scan ends before compiled code pays for its compilation; what runs for seconds is compiled all the same.
      "--compile-jit-policy=20",
      "--minify",
      // One chunk per command, so that a scan does not instantiate unused code.
      "--splitting",
      "--format=esm",
      // Some packages contain the directory they were built in.
      `--define=__dirname="/unghost"`,
      `--define=__filename="/unghost"`,
      `--define=UNGHOST_COMMIT="${commit()}"`,
      `--define=UNGHOST_IMAGE_NAME="${publishedAt(process.env, manifest.version).image}"`,
      `--define=UNGHOST_CNI_LAUNCHER="${launcher?.toString("base64") ?? ""}"`,
      `--target=${target}`,
      `--compile-executable-path=${resolve(disarmed)}`,
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      `--outfile=${draft}`,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  rmSync(disarmed);
  // bun appends .exe where the name has none.
  const built = target.startsWith("bun-windows-") && !draft.endsWith(".exe") ? `${draft}.exe` : draft;
  const compiled = readFileSync(built);
  const binary = target === "bun-darwin-x64" ? withoutSignature(compiled) : compiled;
  rmSync(built);
  writeInPieces(draft, binary);
  renameSync(draft, out);
}

const PIECE_BYTES = 16 * 1024;

/**
 * In small pieces, like tar, dpkg and curl. The kernel keeps a file that was written at once in pages of 2 MB, and
 * counts each of them as memory of a process that reads one byte of it: 10 MB more for the agent.
 */
function writeInPieces(path: string, bytes: Buffer): void {
  const file = openSync(path, "wx", 0o755);
  try {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) writeFileSync(file, bytes.subarray(at, at + PIECE_BYTES));
  } finally {
    closeSync(file);
  }
}

/** The commit of the sources; a copy without a repository passes it in the environment. */
function commit(): string {
  const given = process.env["UNGHOST_COMMIT"];
  if (given) return given.replace(/[^0-9a-zA-Z.-]/g, "");
  try {
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return "unknown";
  }
}

/**
 * The engine finds its switches by name. An environment entry ends at its first NUL, so none can have this name. Before
 * it is compiled, because macOS ends a program whose bytes are not those that were signed.
 */
function disarmedEngine(path: string): Buffer {
  const engine = readFileSync(path);
  for (const name of ENGINE_SWITCHES) {
    let at = engine.indexOf(name);
    if (at < 0) throw new Error(`${path} does not contain ${name}: find how this engine reads it`);
    for (; at >= 0; at = engine.indexOf(name, at)) engine.fill(0, at, at + name.length);
  }
  return engine;
}
