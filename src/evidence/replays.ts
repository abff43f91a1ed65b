import type { SandboxId } from "../snapshot/ids.ts";
import type { ResultFile } from "../snapshot/types.ts";
import type { Step } from "./step.ts";

/** The DELs that are still owed to the plugins of a sandbox that is gone, before the records of them are moved away. */
export function replaysOf(sandboxId: SandboxId, results: readonly ResultFile[]): readonly Step[] {
  const replayable = results.filter(({ health, hasConfig }) => health === "ok" && hasConfig === true);
  return replayable.map(({ path }) => ({ kind: "replay-del", sandboxId, path }));
}
