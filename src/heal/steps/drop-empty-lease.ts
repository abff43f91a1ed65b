import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { parseLease } from "../../snapshot/host-local.ts";
import type { HealContext } from "../execution/session.ts";
import type { Waits } from "../execution/waits.ts";
import { identifyFile } from "../files/file-identity.ts";
import { withFlock } from "../locks/kernel-lock.ts";
import { quarantineFile } from "../quarantine/quarantine.ts";
import { notMoved, reasonFor, refused, type StepResult } from "./step-result.ts";

export interface DropEmptyLeaseTools extends HealContext {
  readonly waits: Pick<Waits, "queryMs">;
}

/** Quarantines an address file without an owner, while holding host-local's lock. */
export async function dropEmptyLease(
  { path, networkDir }: Extract<Step, { kind: "drop-empty-lease" }>,
  finding: Finding,
  tools: DropEmptyLeaseTools,
): Promise<StepResult> {
  const lock = resolveOnHost(tools.hostRoot, `${networkDir}/lock`, "keep");
  const locked = await withFlock(lock, tools.waits.queryMs, async (): Promise<StepResult> => {
    const expected = await identifyFile(tools.hostRoot, path);
    if (!expected.ok) return { kind: "unneeded" };
    const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
    if (file.kind !== "content") return refused({ code: "not-a-plain-file", path });
    if (parseLease(file.text) !== undefined) return refused({ code: "lease-has-owner", path });
    const moved = await quarantineFile(tools, { ...reasonFor(finding), path, expected: expected.value });
    if (moved.outcome === "healed") return { kind: "done", journalId: moved.id, undoable: true };
    return notMoved(moved);
  });
  return locked.ok ? locked.value : refused({ code: "lock-refused", refusal: locked.refusal });
}
