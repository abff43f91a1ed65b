import type { Network } from "./network.ts";
import type { Script } from "./script.ts";
import type { Store } from "./store.ts";

/** The shared state of one simulated runtime's services. */
export interface World {
  readonly store: Store;
  readonly script: Script;
  readonly network: Network;
  readonly version: string;
  readonly socket: string;
  /** The directory that it reports for its plugins. */
  readonly cniBinDir: string;
}
