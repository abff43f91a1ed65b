import { lstatSync, unlinkSync } from "node:fs";
import { basename } from "node:path";
import { failureOf, runChild } from "../../child/run-child.ts";
import { systemCallEnv, unlinkCommand, unmountCommand } from "../../child/system-call.ts";
import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { describeError } from "../../host/system-error.ts";
import type { FreshFacts } from "../execution/fresh-facts.ts";
import type { Waits } from "../execution/waits.ts";
import { canonicalPath } from "../files/file-identity.ts";
import type { HealReason } from "../heal-reason.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface RemoveNetnsTools extends JournalTools {
  readonly hostRoot: string;
  readonly facts: Pick<FreshFacts, "processes" | "containerd">;
  readonly waits: Pick<Waits, "queryMs">;
}

/** Unmounts and unlinks a network namespace without a record and without a process. */
export async function removeNetns(
  { path, inode }: Extract<Step, { kind: "remove-netns" }>,
  finding: Finding,
  tools: RemoveNetnsTools,
): Promise<StepResult> {
  const opened = resolveOnHost(tools.hostRoot, path, "keep");
  const stats = lstatSync(opened, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { kind: "unneeded" };
  if (!stats.isFile()) return refused({ code: "not-a-namespace", path });
  if (inode !== undefined && stats.ino !== inode) return refused({ code: "namespace-changed", path });
  const objection = await inUse(path, stats.ino, tools);
  if (objection !== undefined) return refused(objection);
  return await journaled(tools, finding, { kind: "remove-netns", path }, async () => {
    const onHost = canonicalPath(tools.hostRoot, path);
    if (inode !== undefined) {
      const error = await errorOf(unmountCommand(tools.hostRoot, onHost), tools);
      if (error !== undefined) return failed({ code: "unmount-failed", path, error });
    }
    const error = await unlink(onHost, tools);
    return error === undefined ? { kind: "done" } : failed({ code: "unlink-failed", path, error });
  });
}

async function unlink(path: string, tools: RemoveNetnsTools): Promise<string | undefined> {
  if (tools.hostRoot !== "/") return await errorOf(unlinkCommand(tools.hostRoot, path), tools);
  try {
    unlinkSync(path);
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

async function errorOf(command: readonly string[], { waits }: RemoveNetnsTools): Promise<string | undefined> {
  const result = await runChild(command, { timeoutMs: waits.queryMs, env: systemCallEnv() });
  const failure = failureOf(result);
  return failure === undefined ? undefined : `${failure}. ${result.stderr.trim()}`;
}

async function inUse(path: string, inode: bigint, { facts }: RemoveNetnsTools): Promise<HealReason | undefined> {
  const [processes, containerd] = await Promise.all([facts.processes(), facts.containerd()]);
  if (processes.status !== "read" || containerd === undefined) return { code: "namespace-users-unread" };
  if (processes.value.netnsUnread !== undefined) return { code: "namespace-users-unread" };
  if (processes.value.netnsInodes.has(inode)) return { code: "namespace-in-use" };
  const records = [...containerd.records, ...containerd.sandboxes];
  const refers = records.some(({ sandbox }) => basename(sandbox?.netnsPath ?? "") === basename(path));
  return refers ? { code: "namespace-referenced" } : undefined;
}
