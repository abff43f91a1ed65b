import type { StateDir } from "../files/state-dir.ts";
import type { Journal } from "../journal/journal.ts";

/** What everything that changes the node needs: where it remembers, where it writes it down, and where the host is. */
export interface HealContext {
  readonly stateDir: StateDir;
  readonly journal: Journal;
  /** "/" on the node itself, the mount point of the host in a container. */
  readonly hostRoot: string;
}
