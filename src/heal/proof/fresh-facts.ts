import { join } from "node:path";
import { reason } from "../../evidence/finding.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { listDirectory } from "../../host/safe-fs.ts";
import type { Source } from "../../host/source.ts";
import { parseResultName } from "../../node/cni-files.ts";
import { readContainerd, readTasks } from "../../node/containerd-facts.ts";
import { readProcessTable } from "../../node/process-table.ts";
import { type OurRuntime, readProcesses } from "../../node/processes.ts";
import type { ProcessFacts } from "../../node/types/runtime.ts";
import type { ContainerdClient } from "../../runtime/containerd.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import type { Container, SandboxState } from "../../runtime/gen/runtime/v1/cri.ts";

export type Sleep = (milliseconds: number) => Promise<unknown>;

/** Timeouts of heal. */
export const DEFAULT_WAITS = {
  /** Read-only calls, which answer quickly. */
  queryMs: 10_000,
  /** Stop and remove: kubelet waits 2 min, and an aborted DEL is worse than a slow one. */
  actMs: 130_000,
  /** How long to wait for kubelet once the obstacle is gone; it retries about every 13 s. */
  kubeletMs: 45_000,
  /** How long to wait for a CSI driver's socket: kubelet creates the sandbox, then starts the plugin. */
  socketMs: 60_000,
  /** Between SIGTERM and SIGKILL. */
  termMs: 3000,
  /** For the runtime's rollback of a creation after its plugin has ended. */
  rollbackMs: 5000,
  /** How long a running plugin gets to exit before what it may hold is checked. */
  pluginMs: 5000,
};

export type Waits = Readonly<typeof DEFAULT_WAITS>;

/** How a run is stopped early. */
export interface Interruption {
  /** No further step is started. */
  readonly stop: AbortSignal;
  /** Steps in flight are not waited for any longer. */
  readonly giveUp: AbortSignal;
}

export const INTERRUPTED = reason("interrupted", "the run was interrupted before it came to this");

/** A run without interruption. */
export function uninterrupted(): Interruption {
  return { stop: new AbortController().signal, giveUp: new AbortController().signal };
}

export interface FactSources {
  readonly root: string;
  /** Missing while it does not run. */
  readonly runtime?: OurRuntime;
  readonly cniCacheDirs: readonly string[];
  readonly cri: Pick<CriClient, "listSandboxStates" | "listPodSandbox" | "listContainers">;
  readonly containerd: ContainerdClient | undefined;
  readonly queryMs: number;
}

/** A dead sandbox does not become alive, and no id is reused: a fact of this age is still valid. */
const FRESH_MS = 500;

export type FreshFacts = ReturnType<typeof freshFacts>;

/**
 * Facts about the whole node with a maximum age, shared by concurrent proofs. A runtime iterates over all its sandboxes
 * for every list, however it is filtered, so one list per sandbox would be quadratic.
 */
export function freshFacts({ root, runtime, cniCacheDirs, cri, containerd, queryMs }: FactSources) {
  const call = { timeoutMs: queryMs };
  let renewedAt = Number.NEGATIVE_INFINITY;
  /** One read for all callers while it is in flight or fresh. The age counts from its start. */
  function shared<T>(readAgain: () => Promise<T>): () => Promise<T> {
    let reading: Promise<T> | undefined;
    let startedAt = Number.NEGATIVE_INFINITY;
    return () => {
      const now = performance.now();
      if (reading === undefined || now - startedAt > FRESH_MS || startedAt <= renewedAt) {
        startedAt = now;
        reading = readAgain();
      }
      return reading;
    };
  }

  const sandboxes = shared(async () => {
    const listed = await unlessTooLarge(() => cri.listSandboxStates(call));
    return listed && new Map(listed.map((sandbox) => [sandbox.id, sandbox]));
  });
  const containers = shared(async () => {
    const listed = await unlessTooLarge(() => cri.listContainers(undefined, call));
    return listed && Map.groupBy(listed, ({ podSandboxId }) => podSandboxId);
  });
  const resultFiles = shared(() => Promise.resolve(listResultFiles(root, cniCacheDirs)));
  async function processesNow(): Promise<Source<ProcessFacts>> {
    const signal = AbortSignal.timeout(queryMs);
    const table = await readProcessTable({ root, signal });
    return await readProcesses({ root, table, runtime, signal });
  }
  const processes = shared(processesNow);
  const tasks = shared(async () => (containerd === undefined ? undefined : await readTasks(containerd, call)));
  return {
    processes,
    /** Always read again, for callers that are about to send a signal. */
    processesNow,
    /** Undefined if the runtime is not containerd. */
    tasks,
    /** Undefined if the runtime is not containerd. */
    containerd: shared(async () => (containerd === undefined ? undefined : await readContainerd(containerd, call))),
    /** From the runtime's list; undefined if it is not listed. */
    sandbox: async (id: string): Promise<SandboxState | undefined> => {
      const all = await sandboxes();
      if (all !== undefined) return all.get(id);
      return (await cri.listPodSandbox({ id }, call)).find((one) => one.id === id);
    },
    containersOf: async (podSandboxId: string): Promise<readonly Container[]> => {
      const all = await containers();
      return all === undefined ? await cri.listContainers({ podSandboxId }, call) : (all.get(podSandboxId) ?? []);
    },
    /** The paths of a sandbox's result files, of any file type. */
    resultFiles: async (sandboxId: string) => (await resultFiles()).get(sandboxId) ?? [],
    /** Starts to read what every proof needs. */
    begin: () => {
      // The caller that needs one of them gets its error.
      void Promise.allSettled([sandboxes(), containers(), tasks(), processes(), resultFiles()]);
    },
    /** Later calls read again. */
    renew: () => {
      renewedAt = performance.now();
    },
  };
}

function listResultFiles(root: string, cacheDirs: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const bySandbox = new Map<string, string[]>();
  for (const dir of cacheDirs.map((cacheDir) => join(cacheDir, "results"))) {
    const listing = listDirectory(resolveOnHost(root, dir, "keep"));
    for (const { name } of listing.kind === "listed" ? listing.entries : []) {
      const id = parseResultName(name)?.sandboxId;
      if (id !== undefined) bySandbox.set(id, [...(bySandbox.get(id) ?? []), `${dir}/${name}`]);
    }
  }
  return bySandbox;
}

/** Returns undefined if the list exceeds the message limit: then each sandbox is requested alone. */
async function unlessTooLarge<T>(list: () => Promise<readonly T[]>): Promise<readonly T[] | undefined> {
  try {
    return await list();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "overflow") return undefined;
    throw error;
  }
}
