import type { CgroupVersion } from "./cgroup.ts";
import { crioSetup } from "./crio.ts";
import { containerdSetup } from "./runtime-config.ts";
import type { RuntimeVersion } from "./runtimes.ts";
import type { Tools } from "./tools.ts";

/** One container runtime as a node runs it. */
export interface RuntimeSetup {
  /** Of its service and its process. */
  readonly name: "containerd" | "crio";
  /** Directories of its programs, in the order of PATH. */
  readonly binDirs: readonly string[];
  readonly command: readonly string[];
  /** Paths in the node. */
  readonly socket: string;
  readonly log: string;
  /** Path in the node -> content; what starts with `#!` is a program. */
  readonly files: Readonly<Record<string, string>>;
  /** The command that imports an image from an OCI archive. */
  importImage(archive: string): readonly string[];
}

export interface RuntimeOptions {
  readonly snapshotter: "overlayfs" | "native";
  readonly cgroup: CgroupVersion;
  /** TOML appended to the configuration of containerd, or a drop-in of CRI-O's. */
  readonly extraConfig?: string;
}

export function runtimeSetup(version: RuntimeVersion, tools: Tools, options: RuntimeOptions): Promise<RuntimeSetup> {
  return version === "crio" ? crioSetup(tools, options) : containerdSetup(version, tools, options);
}
