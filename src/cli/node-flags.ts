import type { TypedFlagParameter } from "@stricli/core";
import type { NodeFlags } from "./settings.ts";

function optionalText(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, brief, placeholder } as const;
}

function optionalSwitch(brief: string) {
  return { kind: "boolean", optional: true, withNegated: false, brief } as const;
}

function optionalList(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, variadic: ",", brief, placeholder } as const;
}

/** The flags every node command knows. */
export const nodeFlags = {
  runtimeEndpoint: optionalText("Socket of the container runtime (default: found by itself)", "unix://PATH"),
  cniCacheDir: optionalText("Where libcni, multus, flannel and host-local keep their files", "DIR"),
  multusDir: optionalText("Where multus keeps its delegate cache (default: what its configuration says)", "DIR"),
  stateDir: optionalText("Where unghost keeps its journal and quarantine", "DIR"),
  kubeconfig: optionalText("Credentials for the Kubernetes API", "FILE"),
  node: optionalText("Name of this node in Kubernetes (default: the host name)", "NAME"),
  noKube: optionalSwitch("Ask neither the Kubernetes API nor kubelet's directories about pods"),
  hostRoot: optionalText("Where the host's file system is mounted (for containers)", "DIR"),
  config: optionalText("Configuration file", "FILE"),
  output: optionalText("table, json or yaml", "FORMAT"),
  timeout: optionalText("Deadline of each source (default 4s)", "DURATION"),
  minAge: optionalText(
    "Leave alone what is dead for less than this while a kubelet is alive (default 10m)",
    "DURATION",
  ),
  inflightGrace: optionalText("How long a sandbox may be in the making (default 10m)", "DURATION"),
  concurrency: optionalText("How many sandboxes at a time", "N"),
  only: optionalList("Only these failure classes", "CLASS"),
  skip: optionalList("All failure classes but these", "CLASS"),
  verbose: optionalSwitch("Say more"),
} as const satisfies { readonly [Key in keyof Required<NodeFlags>]: TypedFlagParameter<never> | object };

export const nodeFlagAliases = { o: "output", v: "verbose" } as const;
