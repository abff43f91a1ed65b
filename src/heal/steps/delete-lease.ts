import type { Finding } from "../../evidence/finding.ts";
import type { ContainerdClient } from "../../runtime/containerd.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { findReference, type ReferenceTools } from "../execution/prove.ts";
import type { Waits } from "../execution/waits.ts";
import { type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface DeleteLeaseTools extends JournalTools, ReferenceTools {
  /** Undefined if the runtime is not containerd. */
  readonly containerd: Pick<ContainerdClient, "deleteLease"> | undefined;
  readonly waits: ReferenceTools["waits"] & Pick<Waits, "queryMs">;
}

/** Deletes the containerd lease of a sandbox that no longer exists. */
export async function deleteLease(leaseId: string, finding: Finding, tools: DeleteLeaseTools): Promise<StepResult> {
  const { containerd } = tools;
  if (containerd === undefined) return { kind: "unneeded" };
  const reference = await findReference(leaseId, tools);
  if (reference !== undefined) return refused({ code: "still-referenced", by: reference });
  return await journaled(tools, finding, { kind: "delete-lease", lease: leaseId }, async () => {
    try {
      await containerd.deleteLease(leaseId, { timeoutMs: tools.waits.queryMs });
    } catch (error) {
      // The runtime's own rollback was faster.
      if (!(error instanceof RuntimeError && error.kind === "not-found")) throw error;
    }
    return { kind: "done" };
  });
}
