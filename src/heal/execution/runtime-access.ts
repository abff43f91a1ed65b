import { valueOr } from "../../host/source.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import { type ContainerdClient, openContainerd } from "../../runtime/containerd.ts";
import { type CriClient, openCri } from "../../runtime/cri.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { RecordStore } from "../files/record-store.ts";
import { type FreshFacts, freshFacts } from "./fresh-facts.ts";
import { type RemovalVerifier, removalVerifier } from "./removal-verifier.ts";
import { DEFAULT_WAITS, type Waits } from "./waits.ts";

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
  const { hostRoot, cniCacheDir, waits = DEFAULT_WAITS } = options;
  const path = snapshot.runtime.endpoint.replace(/^unix:\/\//, "");
  const cri = openCri(path);
  const containerd = snapshot.containerd.status === "absent" ? undefined : openContainerd(path);
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  const cniCacheDirs = multusDir === undefined ? [cniCacheDir] : [cniCacheDir, multusDir];
  const ended = (valueOr(snapshot.cri, undefined)?.containers ?? []).flatMap(({ id, exit }) =>
    exit === undefined ? [] : [[id, exit.logPath] as const],
  );
  return {
    cri,
    containerd,
    cniCacheDirs,
    logPaths: new Map<string, string>(ended),
    facts: freshFacts({
      root: hostRoot,
      runtime: {
        socketPath: path,
        cniBinDirs: cniBinDirsOf(snapshot),
        isContainerd: snapshot.runtime.name.startsWith("containerd"),
      },
      cniCacheDirs,
      cri,
      containerd,
      queryMs: waits.queryMs,
    }),
    removeVerified: removalVerifier({ cri, containerd, queryMs: waits.queryMs }),
    close: () => {
      cri.close();
      containerd?.close();
    },
  };
}

/**
 * A node whose runtime does not run: whatever it has is not ready, and only processes can show that something is alive.
 * No other call succeeds.
 */
export function absentRuntime({ hostRoot, cniCacheDir, waits = DEFAULT_WAITS }: RuntimeAccessOptions): RuntimeAccess {
  const cri: CriClient = {
    ...openCri(NO_SOCKET),
    listSandboxStates: () => Promise.resolve([]),
    listContainers: () => Promise.resolve([]),
    podSandboxState: () => Promise.resolve(PodSandboxState.SANDBOX_NOTREADY),
  };
  const { queryMs } = waits;
  const cniCacheDirs = [cniCacheDir];
  return {
    cri,
    containerd: undefined,
    cniCacheDirs,
    logPaths: new Map(),
    facts: freshFacts({ root: hostRoot, cniCacheDirs, cri, containerd: undefined, queryMs }),
    removeVerified: removalVerifier({ cri, containerd: undefined, queryMs }),
    close: () => cri.close(),
  };
}

const NO_SOCKET = "/dev/null";

/** The runtime's plugin directories, from its configuration or its status. */
export function cniBinDirsOf({ cni, cri }: Pick<Snapshot, "cni" | "cri">): readonly string[] {
  return valueOr(cni.conf, undefined)?.binDirs ?? valueOr(cri, undefined)?.cniDirs?.bin ?? [];
}
