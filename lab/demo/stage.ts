import type { CriClient } from "../../src/runtime/cri.ts";
import type { PodRef } from "../../src/snapshot/ids.ts";

/** The pods of the story. A finished one is kept for its logs and must never be taken for a ghost. */
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

/** A node that the story happens on, real or simulated. */
export interface Stage {
  /** What it is, in words. */
  readonly description: string;
  /** For the current boot. */
  readonly cri: CriClient;
  createPods(): Promise<void>;
  /** Power off and on again, up to the moment at which the service manager runs ExecStartPre: no runtime yet. */
  powerCutAndBoot(): Promise<void>;
  /** The copied one-liner, and who makes its calls. */
  oneLiner(): Promise<Ran & { readonly madeBy: string }>;
  startRuntime(): Promise<void>;
  /** What CNI keeps on disk for pods. */
  filesOnDisk(): { readonly results: number; readonly leases: number };
  /** What a power cut does to a file that was never synced: web's CNI result is empty. */
  emptyResultOfWeb(): Promise<void>;
  /** A creation that never ends; gives the name that it holds. Undefined where nothing runs. */
  hungCreation?: () => Promise<{ readonly reservedName: string; readonly pod: PodRef }>;
  /** A pod whose multus delegate fails to set it up and to take it down. Gives why not, where multus cannot be had. */
  multusDeadlock?: () => Promise<{ readonly pod: PodRef } | { readonly unavailable: string }>;
  unghost(args: readonly string[]): Promise<Ran & { readonly typed: string }>;
  /** Leaves nothing behind. */
  clear(): Promise<void>;
}

export const ONE_LINER = "crictl pods --state NotReady -q | xargs crictl rmp --force || true";
export const CALL = { timeoutMs: 30_000 } as const;

/** host-local's lock and its note of the last address lie beside the leases. */
export function isAddress(fileName: string): boolean {
  return /^[\d.]+$/.test(fileName);
}
