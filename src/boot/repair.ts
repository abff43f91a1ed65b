import { copyFile, open } from "node:fs/promises";
import { join } from "node:path";
import { diagnoseOffline } from "../diagnose/offline.ts";
import { openHealSession, type SessionOptions } from "../heal/execution/session.ts";
import { resolveOnHost } from "../host/host-paths.ts";
import { describeError } from "../host/system-error.ts";
import { openContainerd } from "../runtime/containerd.ts";
import { observeOffline } from "../snapshot/observe-offline.ts";
import { borrowRuntime } from "./borrowed-runtime.ts";
import { type ChosenRecord, chooseRecords } from "./repair-choice.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

export interface RepairOptions {
  readonly files: RuntimeFiles;
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  readonly runDir: string;
  readonly session: SessionOptions;
  readonly deadlineMs: number;
}

export type RepairPlan =
  | { readonly kind: "nothing"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "plan"; readonly metadataPath: string; readonly remove: readonly ChosenRecord[] };

/** Reads the records without containerd and returns those that prevent its start. Changes nothing. */
export async function planRepair(options: RepairOptions): Promise<RepairPlan> {
  const facts = await offlineFacts(options);
  if (facts.metadata.status === "absent") return { kind: "nothing", reason: facts.metadata.reason };
  if (facts.metadata.status === "failed") return { kind: "refused", reason: facts.metadata.error.message };
  if (facts.metadata.value.damage.length > 0) {
    return { kind: "refused", reason: "the metadata file itself is damaged: restore it, or begin with an empty root" };
  }
  const choice = chooseRecords(facts.metadata.value, facts.processes);
  if (choice.kind === "refused") return choice;
  if (choice.remove.length === 0) return { kind: "nothing", reason: "no record keeps the runtime from starting" };
  return { kind: "plan", metadataPath: facts.metadata.value.path, remove: choice.remove };
}

function offlineFacts({ files, hostRoot, cniCacheDir }: RepairOptions) {
  return observeOffline({
    hostRoot,
    containerdRoot: files.root,
    containerdVersion: undefined,
    cniCacheDir,
    timeoutMs: 10_000,
  });
}

export type Repaired =
  | { readonly kind: "repaired"; readonly removed: number; readonly copy: string }
  | { readonly kind: "failed"; readonly reason: string };

const CALL_MS = 30_000;

/** Removes the chosen records through containerd's own API, with CRI disabled; the file is copied first. */
export async function repair(plan: RepairPlan & { readonly kind: "plan" }, options: RepairOptions): Promise<Repaired> {
  const session = await openHealSession(options.session);
  if (!session.ok) return { kind: "failed", reason: `${session.refusal.message} ${session.refusal.next}` };
  const { journal, stateDir } = session.value;
  try {
    const copy = join(stateDir.root, `meta.db.${new Date().toISOString().replaceAll(":", "-")}`);
    await copySynced(resolveOnHost(options.hostRoot, plan.metadataPath, "follow"), copy);
    const deadline = AbortSignal.timeout(options.deadlineMs);
    const borrowed = await borrowRuntime(options.files, join(options.runDir, "borrowed"), deadline, "records-only");
    if (borrowed.kind === "failed") return { kind: "failed", reason: borrowed.reason };
    const containerd = openContainerd(borrowed.runtime.endpoint.replace("unix://", ""));
    try {
      for (const record of plan.remove) {
        const entry = await journal.begin({
          finding: `${record.class}/${record.id}`,
          class: record.class,
          subject: { type: "record", name: record.id },
          action: { kind: "delete-record", record: record.id, copy },
        });
        if (!entry.ok) return { kind: "failed", reason: entry.refusal.message };
        const call = { timeoutMs: CALL_MS };
        if (record.store === "containers") await containerd.deleteContainer(record.id, call);
        else await containerd.deleteSandbox(record.id, call);
        await journal.done(entry.value, "healed");
      }
    } finally {
      containerd.close();
      await borrowed.runtime.stop();
    }
    const left = diagnoseOffline(await offlineFacts(options)).filter(({ severity }) => severity === "critical");
    if (left.length > 0) return { kind: "failed", reason: `still in the way: ${left.map(({ id }) => id).join(", ")}` };
    return { kind: "repaired", removed: plan.remove.length, copy };
  } catch (error) {
    return { kind: "failed", reason: describeError(error) };
  } finally {
    await session.value.close();
  }
}

async function copySynced(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const file = await open(to, "r+");
  try {
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
}
