import { containerdBehaviour } from "../src/evidence/versions.ts";

/**
 * What the lab runs, each version in one place: README.md's "Tested with" is generated from here. How releases of
 * containerd differ is in src/evidence/versions.ts, and in the rows where unghost does not depend on it; `make
 * runtime-test` shows both on real nodes.
 */
interface ContainerdRow {
  readonly release: string;
  /** The Go module that it is built from; without one it is Debian's. */
  readonly module?: string;
  /** Of the configuration file. */
  readonly config: 2 | 3;
  /** Whether sandboxes have records in the sandbox store. */
  readonly sandboxStore: boolean;
  /** Whether each sandbox holds a lease. */
  readonly leases: boolean;
  /** A sandbox whose ADD failed, and so did the DEL of the rollback. */
  readonly failedRollback: "stays with zero time" | "stays with its time" | "is gone";
  /** A sandbox whose ADD was under way when containerd was killed. */
  readonly interruptedRun: "stays with its time" | "stays with zero time";
}

const V1 = "github.com/containerd/containerd";
const V2 = "github.com/containerd/containerd/v2";

const SINCE_2_0 = {
  module: V2,
  config: 3,
  sandboxStore: true,
  leases: true,
  failedRollback: "is gone",
  interruptedRun: "stays with zero time",
} as const;

export const CONTAINERDS = {
  "1.6": {
    release: "1.6.20",
    config: 2,
    sandboxStore: false,
    leases: false,
    failedRollback: "stays with zero time",
    interruptedRun: "stays with its time",
  },
  "1.7": {
    release: "1.7.36",
    module: V1,
    config: 2,
    sandboxStore: false,
    leases: false,
    failedRollback: "stays with its time",
    interruptedRun: "stays with its time",
  },
  "2.0": { ...SINCE_2_0, release: "2.0.14", leases: false },
  // Not the newest of its line: the last that calls no DEL without a recorded result.
  "2.1": { ...SINCE_2_0, release: "2.1.6" },
  "2.2": { ...SINCE_2_0, release: "2.2.9" },
  "2.3": { ...SINCE_2_0, release: "2.3.7" },
  "2.4": { ...SINCE_2_0, release: "2.4.2" },
} as const satisfies Readonly<Record<string, ContainerdRow>>;

export type ContainerdVersion = keyof typeof CONTAINERDS;
export type RuntimeVersion = ContainerdVersion | "crio";

/** A release of containerd with everything that is known about it. */
export function containerdRelease(version: RuntimeVersion) {
  if (version === "crio") throw new Error("CRI-O is no containerd");
  const row: ContainerdRow = CONTAINERDS[version];
  const behaviour = containerdBehaviour(row.release);
  if (behaviour === undefined) throw new Error(`nothing is known about containerd ${row.release}`);
  return { ...row, ...behaviour };
}

export const CONTAINERD_VERSIONS = Object.keys(CONTAINERDS) as readonly ContainerdVersion[];

export function containerdVersion(text: string): ContainerdVersion {
  const version = CONTAINERD_VERSIONS.find((one) => one === text.trim());
  if (version === undefined) throw new Error(`the lab runs containerd ${CONTAINERD_VERSIONS.join(", ")}, not ${text}`);
  return version;
}

export const CRIO = { release: "1.36.3", module: "github.com/cri-o/cri-o" } as const;

/** Control plane and kubelet; the first where a test asks for no other. */
export const KUBERNETES = ["1.36.4", "1.37.1"] as const;
export type KubernetesVersion = (typeof KUBERNETES)[number];

/** 4.2.3 as the first reporter runs it; 4.3.0 is the newest release that still has the delete deadlock (class B3/B4). */
export const MULTUS = ["4.2.3", "4.3.0"] as const;
export type MultusVersion = (typeof MULTUS)[number];
