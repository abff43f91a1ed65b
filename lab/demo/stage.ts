import type { PodRef } from "../../src/node/types/ids.ts";
import type { CriClient } from "../../src/runtime/cri.ts";

/** The pods of the story. A finished one is kept for its logs and must never count as a ghost. */
export const CAST = [
  { namespace: "kube-system", name: "cni-agent", containers: ["agent"], finished: false },
  { namespace: "shop", name: "db", containers: ["postgres"], finished: false },
  { namespace: "shop", name: "web", containers: ["nginx", "metrics"], finished: false },
  { namespace: "shop", name: "backup", containers: ["dump"], finished: true },
] as const;

export interface Ran {
  readonly code: number;
  readonly output: string;
}

/** The node of the story, real or simulated. */
export interface Stage {
  /** What it is, in words. */
  readonly description: string;
  /** For the current boot. */
  readonly cri: CriClient;
  createPods(): Promise<void>;
  /** Power off and on again, until the service manager runs ExecStartPre: there is no runtime yet. */
  powerCutAndBoot(): Promise<void>;
  /** The copied one-liner, and the program that makes its calls. */
  oneLiner(): Promise<Ran & { readonly madeBy: string }>;
  startRuntime(): Promise<void>;
  /** What CNI keeps on disk for pods. */
  filesOnDisk(): { readonly results: number; readonly leases: number };
  /** The effect of a power cut on an unsynced file: web's CNI result is empty. */
  emptyResultOfWeb(): Promise<void>;
  /** A hung creation; returns the name that it holds. Undefined on a simulated node. */
  hungCreation?: () => Promise<{ readonly reservedName: string; readonly pod: PodRef }>;
  /** A pod whose multus delegate fails ADD and DEL. Returns the reason if multus is unavailable. */
  multusDeadlock?: () => Promise<{ readonly pod: PodRef } | { readonly unavailable: string }>;
  unghost(args: readonly string[]): Promise<Ran & { readonly typed: string }>;
  /** Removes everything. */
  clear(): Promise<void>;
}

export const ONE_LINER = "crictl pods --state NotReady -q | xargs crictl rmp --force || true";
export const CALL = { timeoutMs: 30_000 } as const;

/** host-local's lock and its file with the last address are beside the leases. */
export function isAddress(fileName: string): boolean {
  return /^[\d.]+$/.test(fileName);
}
