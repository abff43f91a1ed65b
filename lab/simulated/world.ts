import type { Network } from "./network.ts";
import type { Script } from "./script.ts";
import type { Store } from "./store.ts";

/** All that the services of one simulated runtime share. */
export interface World {
  readonly store: Store;
  readonly script: Script;
  readonly network: Network;
  readonly version: string;
  readonly socket: string;
  /** The directory that it reports for its plugins. */
  readonly cniBinDir: string;
}
