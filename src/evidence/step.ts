import type { ContainerId, SandboxId } from "../snapshot/ids.ts";

/**
 * The changes that unghost can make to a node. Classes and plan create steps; only heal/ executes them. Every step
 * contains what it was proven with, so that the proof can be repeated just before the change.
 */
export type Step =
  | {
      readonly kind: "quarantine-file";
      readonly path: string;
      readonly health: "empty" | "corrupt" | "stripped" | "orphaned";
    }
  | { readonly kind: "await-kubelet"; readonly sandboxId: SandboxId }
  | { readonly kind: "stop-sandbox"; readonly sandboxId: SandboxId }
  | { readonly kind: "remove-sandbox"; readonly sandboxId: SandboxId }
  | { readonly kind: "multus-marker"; readonly sandboxId: SandboxId; readonly dir: string }
  | {
      readonly kind: "end-process";
      readonly pid: number;
      readonly startedSecondsAfterBoot: number;
      readonly sandboxId: SandboxId;
    }
  /**
   * Ends all plugin calls that hold the runtime's CNI lock, then waits until Status is answered and the node is Ready.
   */
  | {
      readonly kind: "free-cni-lock";
      /** The node's name in the cluster; missing without an API server. */
      readonly node?: string;
      readonly holders: readonly {
        readonly pid: number;
        readonly startedSecondsAfterBoot: number;
        readonly sandboxId: SandboxId;
      }[];
    }
  /** Stops the container of a network daemon that does not answer on its socket; kubelet starts it again. */
  | {
      readonly kind: "restart-daemon";
      readonly socket: string;
      readonly containerId: ContainerId;
      readonly sandboxId: SandboxId;
      readonly pid: number;
      readonly startedSecondsAfterBoot: number;
    }
  | { readonly kind: "release-addresses"; readonly sandboxId: SandboxId; readonly leases: readonly LeaseRef[] }
  /** DEL with the configuration that libcni cached at this path, for a sandbox that is gone. */
  | { readonly kind: "replay-del"; readonly sandboxId: SandboxId; readonly path: string }
  | { readonly kind: "drop-empty-lease"; readonly path: string; readonly networkDir: string }
  | { readonly kind: "remove-netns"; readonly path: string; readonly inode: bigint | undefined }
  | { readonly kind: "delete-lease"; readonly leaseId: string }
  | {
      readonly kind: "await-socket";
      readonly path: string;
      /** After the timeout the next step runs anyway. */
      readonly optional?: true;
    }
  | {
      readonly kind: "kick-pod";
      readonly namespace: string;
      readonly name: string;
      readonly uid: string;
      /** The node's name in the cluster. */
      readonly node: string;
      /** The sandbox being created that holds the pod's name; missing if the pod crash-looped. */
      readonly holder?: SandboxId;
      /**
       * The pod was down for another reason when it was planned: whether it crashes without the socket is checked
       * later.
       */
      readonly mayCrash?: true;
    };

/** One host-local address, by the file that holds it. */
export interface LeaseRef {
  readonly network: string;
  readonly path: string;
  readonly address: string;
  readonly interfaceName: string;
}
