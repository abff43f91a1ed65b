import type { TypedFlagParameter } from "@stricli/core";
import { list, onOff, text } from "./flag-kinds.ts";
import type { NodeFlags } from "./settings.ts";

/** The flags every node command knows. */
export const nodeFlags = {
  runtimeEndpoint: text("Socket of the container runtime (default: found by itself)", "unix://PATH"),
  cniCacheDir: text("Where libcni, multus, flannel and host-local keep their files", "DIR"),
  multusDir: text("Where multus keeps its delegate cache (default: what its configuration says)", "DIR"),
  stateDir: text("Where unghost keeps its journal and quarantine", "DIR"),
  kubeconfig: text("Credentials for the Kubernetes API", "FILE"),
  node: text("Name of this node in Kubernetes (default: the host name)", "NAME"),
  noKube: onOff("Ask neither the Kubernetes API nor kubelet's directories about pods"),
  hostRoot: text("Where the host's file system is mounted (for containers)", "DIR"),
  config: text("Configuration file", "FILE"),
  output: text("table, json or yaml", "FORMAT"),
  timeout: text("Deadline of each source (default 4s)", "DURATION"),
  minAge: text("Leave alone what is dead for less than this while a kubelet is alive (default 10m)", "DURATION"),
  inflightGrace: text(
    "How long a sandbox creation may take (default 10m; 30s after kubelet or the runtime reported its timeout)",
    "DURATION",
  ),
  volumeAttachmentAge: text("How long a volume may wait to be attached to this node (default 5m)", "DURATION"),
  concurrency: text("How many sandboxes at a time", "N"),
  only: list("Only these failure classes", "CLASS"),
  skip: list("All failure classes but these", "CLASS"),
  verbose: onOff("Say more"),
} as const satisfies { readonly [Key in keyof Required<NodeFlags>]: TypedFlagParameter<never> | object };

export const nodeFlagAliases = { o: "output", v: "verbose" } as const;
