import { type Finding, reason } from "../../evidence/finding.ts";
import type { StepOf } from "../../evidence/step.ts";
import { failed, journaled, type Runs, type StepResult, type StepTools } from "./step-result.ts";

const CALL_MS = 30_000;

/** Through containerd's own API: no record is edited behind its back. */
async function deleteRecord(
  { record, store }: StepOf<"delete-record">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const opened = await tools.records?.open(tools);
  if (opened?.kind !== "open") {
    return failed(reason("runtime-error", opened?.reason ?? "no runtime was started over these records"));
  }
  const { containerd, copy } = opened;
  return await journaled(tools, finding, { kind: "delete-record", record, copy }, async () => {
    const call = { timeoutMs: CALL_MS };
    if (store === "containers") await containerd.deleteContainer(record, call);
    else await containerd.deleteSandbox(record, call);
    return { kind: "done" };
  });
}

export const RECORD_STEPS: Runs<"records"> = { "delete-record": deleteRecord };
