import type { Reason } from "../../evidence/finding.ts";
import { valueOr } from "../../host/source.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import { type ContainerdClient, openContainerd } from "../../runtime/containerd.ts";
import { type CriClient, openCri } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import { DEFAULT_WAITS, type FactSources, type FreshFacts, freshFacts, type Waits } from "./fresh-facts.ts";
import type { RecordStore } from "./record-store.ts";

/** The observed runtime, and the clients and facts that healing uses. */
export interface RuntimeAccess {
  readonly cri: CriClient;
  /** Undefined if the runtime is not containerd. */
  readonly containerd: ContainerdClient | undefined;
  readonly facts: FreshFacts;
  readonly removeVerified: RemovalVerifier;
  /** The directories of libcni's results: the runtime's, and multus' own. */
  readonly cniCacheDirs: readonly string[];
  /** Of containers that have ended. */
  readonly logPaths: ReadonlyMap<string, string>;
  /** The records of a runtime that does not start. */
  readonly records?: RecordStore;
  close(): void;
}

export interface RuntimeAccessOptions {
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
}

export function openRuntime(snapshot: Snapshot, options: RuntimeAccessOptions): RuntimeAccess {
  const { cniCacheDir } = options;
  const path = snapshot.runtime.endpoint.replace(/^unix:\/\//, "");
  const cri = openCri(path);
  const containerd = snapshot.containerd.status === "absent" ? undefined : openContainerd(path);
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  const cniCacheDirs = multusDir === undefined ? [cniCacheDir] : [cniCacheDir, multusDir];
  const ended = (valueOr(snapshot.cri, undefined)?.containers ?? []).flatMap(({ id, exit }) =>
    exit === undefined ? [] : [[id, exit.logPath] as const],
  );
  const runtime = {
    socketPath: path,
    cniBinDirs: cniBinDirsOf(snapshot),
    isContainerd: snapshot.runtime.name.startsWith("containerd"),
  };
  return accessThrough({ cri, containerd, cniCacheDirs, logPaths: new Map<string, string>(ended), runtime }, options);
}

/**
 * A node whose runtime does not run: whatever it has is not ready, and only processes can show that something is alive.
 * No other call succeeds.
 */
export function absentRuntime(options: RuntimeAccessOptions): RuntimeAccess {
  const cri: CriClient = {
    ...openCri(NO_SOCKET),
    listSandboxStates: () => Promise.resolve([]),
    listContainers: () => Promise.resolve([]),
    podSandboxState: () => Promise.resolve(PodSandboxState.SANDBOX_NOTREADY),
  };
  const cniCacheDirs = [options.cniCacheDir];
  return accessThrough({ cri, containerd: undefined, cniCacheDirs, logPaths: new Map() }, options);
}

function accessThrough(
  {
    runtime,
    ...opened
  }: Pick<RuntimeAccess, "cri" | "containerd" | "cniCacheDirs" | "logPaths"> & Pick<FactSources, "runtime">,
  { hostRoot, waits: { queryMs } = DEFAULT_WAITS }: RuntimeAccessOptions,
): RuntimeAccess {
  return {
    ...opened,
    facts: freshFacts({ ...opened, root: hostRoot, runtime, queryMs }),
    removeVerified: removalVerifier({ ...opened, queryMs }),
    close: () => {
      opened.cri.close();
      opened.containerd?.close();
    },
  };
}

const NO_SOCKET = "/dev/null";

/** The runtime's plugin directories, from its configuration or its status. */
export function cniBinDirsOf({ cni, cri }: Pick<Snapshot, "cni" | "cri">): readonly string[] {
  return valueOr(cni.conf, undefined)?.binDirs ?? valueOr(cri, undefined)?.cniDirs?.bin ?? [];
}

/** What the runtime still has of a sandbox that it reported as removed. */
export type RemovalResult = "gone" | "listed" | "recorded";

/** Removes a sandbox and verifies the removal; or returns the reason why it was not removed. */
export type RemovalVerifier = (
  sandboxId: string,
  remove: () => Promise<Reason | undefined>,
) => Promise<RemovalResult | { readonly held: Reason }>;

export interface RemovalSources {
  readonly cri: Pick<CriClient, "listSandboxStates" | "podSandboxState">;
  readonly containerd: Pick<ContainerdClient, "findContainers"> | undefined;
  readonly queryMs: number;
}

/** Long enough for many removals to share one check, too short to matter as a delay. */
const GATHER_MS = 250;

/**
 * RemovePodSandbox answers OK for an unknown id: only a sandbox that is no longer there is removed. A check for each
 * one took a quarter of the time of the removals themselves, so one check serves all that have ended.
 */
export function removalVerifier({ cri, containerd, queryMs }: RemovalSources): RemovalVerifier {
  const call = { timeoutMs: queryMs };
  let underWay = 0;
  let ended: string[] = [];
  let nextCheck: Promise<Left> | undefined;
  let checkNow = (): void => undefined;

  async function check(): Promise<Left> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      checkNow = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    const ids = ended;
    ended = [];
    // A removal that ends from here on may have ended after this check.
    nextCheck = undefined;
    const [listed, recorded] = await Promise.all([
      stillListed(ids, cri, call),
      containerd?.findContainers(ids, call) ?? [],
    ]);
    return { listed, recorded: new Set(recorded.map(({ id }) => id)) };
  }

  return async (sandboxId, remove) => {
    let checking: Promise<Left>;
    underWay += 1;
    try {
      const held = await remove();
      if (held !== undefined) return { held };
      ended.push(sandboxId);
      checking = nextCheck ??= check();
    } finally {
      underWay -= 1;
      if (underWay === 0) checkNow();
    }
    const { listed, recorded } = await checking;
    if (listed.has(sandboxId)) return "listed";
    return recorded.has(sandboxId) ? "recorded" : "gone";
  };
}

interface Left {
  readonly listed: ReadonlySet<string>;
  readonly recorded: ReadonlySet<string>;
}

async function stillListed(
  ids: readonly string[],
  cri: RemovalSources["cri"],
  call: { readonly timeoutMs: number },
): Promise<ReadonlySet<string>> {
  try {
    return new Set((await cri.listSandboxStates(call)).map(({ id }) => id));
  } catch (error) {
    if (!(error instanceof RuntimeError && error.kind === "overflow")) throw error;
    const states = await Promise.all(ids.map(async (id) => [id, await cri.podSandboxState(id, call)] as const));
    return new Set(states.filter(([, state]) => state !== undefined).map(([id]) => id));
  }
}
