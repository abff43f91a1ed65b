import type { SandboxId } from "../../src/node/types/ids.ts";

/** The injected fault, for comparison in tests. Paths and pids are the node's. */
export interface Injected {
  readonly fault: string;
  /** One sentence for the demo and for a failing test. */
  readonly did: string;
  readonly sandboxId?: SandboxId;
  readonly path?: string;
  readonly pid?: number;
}
