import { closeSync, constants, opendirSync, openSync, statfsSync, statSync } from "node:fs";
import { serveRequests } from "./line-socket.ts";
import { type ProcRead, parseCniEnviron, readProcFile } from "./proc.ts";
import { ownCommand } from "./system-call.ts";

/** What is asked about one process. */
export interface MemoryRequest {
  /** `/proc/<pid>` as this process opens it. */
  readonly dir: string;
  /** The environment if it is a CNI plugin's; else nothing of it is returned. */
  readonly environ: boolean;
  /** Whether the arguments are wanted of any process, or of CNI plugins. */
  readonly cmdline: "always" | "plugin";
}

export interface ProcessMemory {
  readonly environ: ProcRead;
  readonly cmdline: ProcRead;
}

/** More than a plugin gets; the rest of a longer environment is not read. */
const MAX_BYTES = 128 * 1024;
const NOTHING: ProcRead = { kind: "content", text: "" };

export const READ_MEMORY = "read-memory";
/** Starts the child. */
export const MEMORY_CHILD = ownCommand(READ_MEMORY, import.meta.url, "serveMemory");

/** The child's part. Returns its exit code. */
export function serveMemory(): number {
  serveRequests((request) => {
    const asked = request as MemoryRequest | { readonly probe: readonly string[] };
    return "probe" in asked ? asked.probe.every(answers) : readMemory(asked);
  });
  return 0;
}

function readMemory({ dir, environ: wanted, cmdline }: MemoryRequest): ProcessMemory {
  const environ = wanted ? readProcFile(`${dir}/environ`, MAX_BYTES) : NOTHING;
  const isPlugin = environ.kind === "content" && parseCniEnviron(environ.text) !== undefined;
  return {
    environ: environ.kind === "content" && !isPlugin ? NOTHING : environ,
    cmdline: isPlugin || cmdline === "always" ? readProcFile(`${dir}/cmdline`, MAX_BYTES) : NOTHING,
  };
}

const MOST_ENTRIES = 100;

/** Whatever the file system answers, an error included, it does answer. */
function answers(file: string): true {
  try {
    const stats = statSync(file);
    statfsSync(file);
    if (stats.isFile()) closeSync(openSync(file, constants.O_RDONLY | constants.O_NONBLOCK));
    if (!stats.isDirectory()) return true;
    const dir = opendirSync(file);
    for (let count = 0; count < MOST_ENTRIES; count += 1) {
      const entry = dir.readSync();
      if (entry === null) break;
      if (entry.isFile()) closeSync(openSync(`${file}/${entry.name}`, constants.O_RDONLY | constants.O_NONBLOCK));
    }
    dir.closeSync();
  } catch {
    // There is no such file, or no permission.
  }
  return true;
}
