import type { ContainerId, SandboxId } from "../snapshot/ids.ts";

/**
 * The single changes unghost knows how to make to a node. Classes and plan name them; only heal/ makes them.
 * Every step carries what it was proven on, so that the proof can be renewed just before the touch.
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
  /** Ends all plugin calls that hold the runtime's CNI lock, and sees that it answers Status again and the node is Ready. */
  | {
      readonly kind: "free-cni-lock";
      /** What the cluster calls this node; missing where no API server was asked. */
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
      /** What follows is done after a while all the same. */
      readonly optional?: true;
    }
  | {
      readonly kind: "kick-pod";
      readonly namespace: string;
      readonly name: string;
      readonly uid: string;
      /** What the cluster calls this node. */
      readonly node: string;
      /** The sandbox in the making that holds its name, where that is why; else it crash-looped. */
      readonly holder?: SandboxId;
      /** It was down for another reason when it was planned: whether it crashes for want of the socket is to be seen. */
      readonly mayCrash?: true;
    }
  | {
      readonly kind: "delete-volume-attachment";
      readonly name: string;
      readonly uid: string;
      readonly node: string;
      readonly volume: string;
    };

/** One host-local address, by the file that holds it. */
export interface LeaseRef {
  readonly network: string;
  readonly path: string;
  readonly address: string;
  readonly interfaceName: string;
}
