import { serveRequests } from "./line-socket.ts";
import { answerMountRequest, answersProbe, type MountRequest } from "./mount-child.ts";
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
    const asked = request as MemoryRequest | MountRequest | { readonly probe: readonly string[] };
    if ("call" in asked) return answerMountRequest(asked);
    return "probe" in asked ? asked.probe.every(answersProbe) : readMemory(asked);
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
