import { lstatSync, unlinkSync } from "node:fs";
import { basename } from "node:path";
import { failureOf, runChild } from "../../child/run-child.ts";
import type { Finding } from "../../classes/finding.ts";
import type { Step } from "../../classes/step.ts";
import { resolveOnHost } from "../../snapshot/host-paths.ts";
import type { NodeTools } from "../node-tools.ts";
import { journaled, type StepResult } from "../step-result.ts";
import { describeError } from "../system-error.ts";

/** Unmounts and unlinks a network namespace that no record refers to and no process lives in. */
export async function removeNetns(
  { path, inode }: Extract<Step, { kind: "remove-netns" }>,
  finding: Finding,
  tools: NodeTools,
): Promise<StepResult> {
  const opened = resolveOnHost(tools.hostRoot, path, "keep");
  const stats = lstatSync(opened, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { kind: "unneeded" };
  if (!stats.isFile()) return { kind: "refused", reason: `${path} is not a namespace file` };
  if (inode !== undefined && stats.ino !== inode)
    return { kind: "refused", reason: `${path} is another namespace by now` };
  const objection = await inUse(path, stats.ino, tools);
  if (objection !== undefined) return { kind: "refused", reason: objection };
  return await journaled(tools, finding, { kind: "remove-netns", path }, async () => {
    try {
      if (inode !== undefined) {
        const unmounted = await runChild(["umount", "--lazy", opened], { timeoutMs: tools.waits.lookMs });
        const failure = failureOf(unmounted);
        if (failure !== undefined) {
          return {
            kind: "failed",
            reason: `${path} could not be unmounted: umount ${failure}. ${unmounted.stderr.trim()}`,
          };
        }
      }
      unlinkSync(opened);
      return { kind: "done" };
    } catch (error) {
      return { kind: "failed", reason: `${path} could not be removed: ${describeError(error)}` };
    }
  });
}

async function inUse(path: string, inode: bigint, tools: NodeTools): Promise<string | undefined> {
  const [processes, containerd] = await Promise.all([tools.facts.processes(), tools.facts.containerd()]);
  if (processes.status !== "read" || containerd === undefined) return "who uses it cannot be told";
  if (processes.oddities.some(({ reason }) => reason.includes("may not be looked into")) && tools.hostRoot !== "/") {
    return "not every process could be looked into";
  }
  if (processes.value.netnsInodes.has(inode)) return "a process lives in it";
  const records = [...containerd.records, ...containerd.sandboxes];
  const refers = records.some(({ sandbox }) => basename(sandbox?.netnsPath ?? "") === basename(path));
  return refers ? "a sandbox record refers to it" : undefined;
}
