import type { Source } from "../../host/source.ts";
import type { Damage } from "../bolt/layout.ts";
import type { CniFacts } from "./cni.ts";
import type { ContainerRecord, Lease, ProcessFacts, SandboxRecord } from "./runtime.ts";
import type { Boot } from "./snapshot.ts";

/** The facts about a node without its runtime. */
export interface OfflineFacts {
  readonly observedAt: Date;
  readonly boot: Source<Boot>;
  readonly metadata: Source<MetadataFile>;
  readonly processes: Source<ProcessFacts>;
  readonly cni: Pick<CniFacts, "results" | "hostLocal">;
  /** The version of the containerd that will be started, if known. */
  readonly containerdVersion?: string;
}

/** Content of containerd's database, read without containerd. */
export interface MetadataFile extends StoredRecords {
  /** As a path of the node. */
  readonly path: string;
  /** Where the file is damaged. The records are then those that could still be read. */
  readonly damage: readonly Damage[];
  /** The file is empty: containerd treats it as new. */
  readonly isEmpty: boolean;
  /** Ids of containers with a directory; undefined if it could not be listed. */
  readonly containerDirs: ReadonlySet<string> | undefined;
}

/** What containerd stores of Kubernetes' sandboxes and containers. */
export interface StoredRecords {
  readonly records: readonly StoredContainer[];
  /** The 2.x sandbox store; empty on 1.x, which has none. */
  readonly sandboxes: readonly SandboxRecord[];
  readonly leases: readonly Lease[];
}

/** A record of containerd with what its file has beyond the types of the API. */
export interface StoredContainer extends ContainerRecord {
  /** Of a container record, if its metadata could be decoded. */
  readonly container?: { readonly name: string; readonly sandboxId: string };
}
