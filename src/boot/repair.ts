import { join } from "node:path";
import type { RefusedRecords, SameName } from "../classes/failure-class.ts";
import { classById, classes } from "../classes/index.ts";
import { toFinding } from "../diagnose/from-logs.ts";
import { diagnoseOffline, offlineDiagnosis, offlineSnapshot } from "../diagnose/offline.ts";
import type { Finding } from "../evidence/finding.ts";
import { livenessOfStored } from "../evidence/liveness.ts";
import { type RunOptions, run } from "../heal/pipeline.ts";
import { recordStore } from "../heal/proof/record-store.ts";
import { absentRuntime } from "../heal/proof/runtime-access.ts";
import { describeError, type Source } from "../host/source.ts";
import { observeOffline } from "../node/observe-offline.ts";
import type { ProcessFacts } from "../node/types/runtime.ts";
import type { MetadataFile, OfflineFacts } from "../node/types/snapshot.ts";
import { DEFAULT_CAP, type HealPolicy } from "../plan/policy.ts";
import { type Planned, type ScanOptions, scanNode } from "../plan/scan.ts";
import { borrowRuntime } from "./borrowed-runtime.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

export interface RepairOptions extends Pick<RunOptions, "session" | "cniCacheDir"> {
  readonly files: RuntimeFiles;
  readonly node: string;
  readonly hostRoot: string;
  readonly runDir: string;
  readonly deadlineMs: number;
}

export type RepairPlan =
  | { readonly kind: "nothing"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  | {
      readonly kind: "plan";
      readonly metadataPath: string;
      readonly remove: readonly ChosenRecord[];
      readonly planned: Planned;
    };

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
  const planned = await scanNode(pipelineOver(options, () => Promise.resolve(facts)));
  return { kind: "plan", metadataPath: facts.metadata.value.path, remove: choice.remove, planned };
}

function offlineFacts({ files, hostRoot, cniCacheDir }: RepairOptions): Promise<OfflineFacts> {
  return observeOffline({
    hostRoot,
    containerdRoot: files.root,
    containerdVersion: undefined,
    cniCacheDir,
    timeoutMs: 10_000,
  });
}

/** The operator asked for the removal of exactly these records; whatever else the node has is left alone. */
function pipelineOver({ node }: RepairOptions, observe: () => Promise<OfflineFacts>): ScanOptions {
  let findings: readonly Finding[] = [];
  const policy = (): HealPolicy => ({
    minAgeMs: 0,
    inflightGraceMs: 0,
    volumeAttachmentAgeMs: 0,
    only: [],
    skip: [],
    allDead: false,
    cap: DEFAULT_CAP,
    consented: new Set(findings.map(({ class: of }) => of)),
  });
  return {
    observe: async () => {
      const facts = await observe();
      findings = refusedBy(facts);
      return offlineSnapshot(facts, node);
    },
    policy,
    diagnose: (snapshot, allowed) => offlineDiagnosis(snapshot, findings, allowed),
  };
}

function refusedBy({ metadata, processes }: OfflineFacts): readonly Finding[] {
  if (metadata.status !== "read") return [];
  const choice = chooseRecords(metadata.value, processes);
  if (choice.kind === "refused") return [];
  return choice.remove.flatMap(({ id, store, class: of, reason }) => {
    const failureClass = classById(of);
    if (failureClass === undefined) return [];
    const found = toFinding(failureClass, {
      severity: "critical",
      subject: { type: "record", name: id },
      summary: reason,
      evidence: [{ source: "metadata file", fact: reason }],
      blocks: ["the next start of the runtime"],
      cure: [{ kind: "delete-record", record: id, store }],
    });
    return [found];
  });
}

export type Repaired =
  | { readonly kind: "repaired"; readonly removed: number; readonly copy: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Removes the chosen records through containerd's own API, with CRI disabled; the file is copied first. */
export async function repair(
  { planned, metadataPath }: RepairPlan & { readonly kind: "plan" },
  options: RepairOptions,
): Promise<Repaired> {
  const deadline = AbortSignal.timeout(options.deadlineMs);
  const records = recordStore({
    path: metadataPath,
    start: () => borrowRuntime(options.files, join(options.runDir, "borrowed"), deadline, "records-only"),
  });
  const failure = new AbortController();
  let last: OfflineFacts | undefined;
  const observe = async (): Promise<OfflineFacts> => {
    // containerd has to end before its database is read.
    await records.close();
    last = await offlineFacts(options);
    return last;
  };
  try {
    const healed = await run(planned, {
      ...pipelineOver(options, observe),
      session: options.session,
      cniCacheDir: options.cniCacheDir,
      concurrency: 1,
      runtime: (_snapshot, access) => ({ ...absentRuntime(access), records }),
      sinks: {
        // What stays in the way makes the rest useless.
        result: ({ outcome }) => {
          if (outcome !== "healed") failure.abort();
        },
        warning: () => undefined,
      },
      interruption: { stop: failure.signal, giveUp: new AbortController().signal },
    });
    if (!healed.ok) return { kind: "failed", reason: `${healed.refusal.message} ${healed.refusal.next}` };
    const { results } = healed.value;
    const unhealed = results.find(({ outcome, undone = [] }) => outcome !== "healed" && undone.length > 0);
    if (unhealed !== undefined) return { kind: "failed", reason: unhealed.reason ?? unhealed.outcome };
    const left = last === undefined ? [] : diagnoseOffline(last).filter(({ severity }) => severity === "critical");
    if (left.length > 0) return { kind: "failed", reason: `still in the way: ${left.map(({ id }) => id).join(", ")}` };
    return {
      kind: "repaired",
      removed: results.filter(({ outcome }) => outcome === "healed").length,
      copy: records.copy() ?? "",
    };
  } catch (error) {
    return { kind: "failed", reason: describeError(error) };
  } finally {
    await records.close();
  }
}

/** A record that prevents the runtime's start, and the one that stays instead. */
interface ChosenRecord {
  readonly id: string;
  readonly store: "containers" | "sandboxes";
  readonly class: string;
  readonly reason: string;
}

type Choice =
  | { readonly kind: "chosen"; readonly remove: readonly ChosenRecord[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Keeps one record of every name: the live one, else one that is also in the 2.x sandbox store, else the newest. If two
 * are alive, an operator has to choose. A record is removed from both stores, because containerd 2.x loads either.
 */
function chooseRecords(file: MetadataFile, processes: Source<ProcessFacts>): Choice {
  const remove: ChosenRecord[] = [];
  for (const { refused, of } of refusedRecords(file)) {
    if (refused.kind === "incomplete") {
      const { id } = refused;
      if (livenessOfStored(id, file, processes).state === "dead")
        remove.push({ id, store: "sandboxes", class: of, reason: "it has no metadata" });
      continue;
    }
    const { name, records } = refused;
    const keeper = keeperOf(refused, file, processes);
    if (keeper === undefined)
      return { kind: "refused", reason: `more than one record named ${name} is, or may be, alive` };
    for (const { id } of records) {
      if (id === keeper) continue;
      remove.push({ id, store: "containers", class: of, reason: `${keeper} has the same name, ${name}, and stays` });
    }
  }
  return { kind: "chosen", remove };
}

function refusedRecords(file: MetadataFile): readonly { readonly refused: RefusedRecords; readonly of: string }[] {
  return classes.flatMap((one) => (one.refusedRecords?.(file) ?? []).map((refused) => ({ refused, of: one.id })));
}

function keeperOf({ records }: SameName, file: MetadataFile, processes: Source<ProcessFacts>): string | undefined {
  const notDead = records.filter(({ id }) => livenessOfStored(id, file, processes).state !== "dead");
  if (notDead.length > 1) return undefined;
  const [living] = notDead;
  if (living !== undefined) return living.id;
  const stored = new Set(file.sandboxes.map(({ id }) => id));
  const newestFirst = records.toSorted((one, other) => ageKey(other) - ageKey(one));
  return (newestFirst.find(({ id }) => stored.has(id)) ?? newestFirst[0])?.id;
}

function ageKey({ createdAt }: SameName["records"][number]): number {
  return createdAt?.getTime() ?? 0;
}
