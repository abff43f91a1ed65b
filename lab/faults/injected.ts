import type { SandboxId } from "../../src/snapshot/ids.ts";

/** What an injector broke, for tests to compare with what is found. Paths and pids are the node's own. */
export interface Injected {
  readonly fault: string;
  /** One sentence for the demo and for a test that fails. */
  readonly did: string;
  readonly sandboxId?: SandboxId;
  readonly path?: string;
  readonly pid?: number;
}
