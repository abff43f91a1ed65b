import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "vitest";
import type { CommandResult } from "../../lab/command.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, sandboxConfig } from "../../lab/pods.ts";
import { STEPS, type StepKind } from "../../src/evidence/step.ts";
import type { SandboxId } from "../../src/node/types/ids.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { ContainerState, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL } from "../lab/real-node.ts";
import type { Company } from "./scanned-node.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

/** A hung stop takes the runtime's two minutes, after the wait for kubelet. */
const HEAL_MS = 300_000;
const STATE_DIR = "/var/lib/unghost";

/** Without a cluster, and without minimum ages, because the test has just created its ghosts. */
export const AT_ONCE = ["--no-kube", "--min-age", "0s"] as const;

export interface Healed {
  readonly code: number | null;
  readonly report: NodeReport;
  readonly stderr: string;
}

export function unghostIn(node: LabNode, args: readonly string[]): Promise<CommandResult> {
  return node.exec([UNGHOST, ...args], { timeoutMs: HEAL_MS });
}

/** `unghost heal --yes -o json` in the node; checks the report with the published schema. */
export async function heal(node: LabNode, flags: readonly string[] = AT_ONCE): Promise<Healed> {
  const result = await unghostIn(node, ["heal", "--yes", "--timeout", "30s", "-o", "json", ...flags]);
  const report = reportOf(result);
  expect([report.actions, report.remaining]).toEqual([expect.any(Array), report.findings.map(({ id }) => id)]);
  return { code: result.code, report, stderr: result.stderr };
}

/**
 * Heals and expects that nothing is left, all of it healed by unghost as the plan showed; a second run has nothing to do.
 */
export async function healAll(node: LabNode, flags: readonly string[] = AT_ONCE): Promise<NodeReport> {
  const planned = reportOf(await unghostIn(node, ["heal", "--dry-run", "--timeout", "30s", "-o", "json", ...flags]));
  const before = new Set((await journalOf(node)).map(({ id }) => id));
  const { code, report } = await heal(node, flags);
  expectAsPlanned(
    planned,
    (await journalOf(node)).filter(({ id }) => !before.has(id)),
  );
  expect(report.actions?.filter(({ outcome }) => outcome !== "healed")).toEqual([]);
  expect([code, report.verdict, report.remaining]).toEqual([0, "healthy", []]);
  const second = await heal(node, flags);
  expect([second.code, second.report.actions]).toEqual([0, []]);
  return report;
}

interface JournalEntry {
  readonly id: string;
  readonly finding: string;
  readonly action: { readonly kind: string; readonly path?: string; readonly address?: string };
}

async function journalOf(node: LabNode): Promise<readonly JournalEntry[]> {
  const { stdout } = await unghostIn(node, ["history", "-o", "json"]);
  return (JSON.parse(stdout) as { readonly entries: readonly JournalEntry[] }).entries;
}

/** Steps that make the same change as another step, and journal it as that. */
const JOURNALED_AS: Partial<Record<StepKind, StepKind>> = {
  "drop-empty-lease": "quarantine-file",
  "free-cni-lock": "end-process",
};

/** Each change in the journal was a step of the plan, with its path or address. */
function expectAsPlanned({ actions = [] }: NodeReport, changes: readonly JournalEntry[]): void {
  for (const { finding, action } of changes) {
    const planned = actions.find((one) => one.finding === finding);
    // Found in a later round of the run, after the first steps.
    if (planned === undefined) continue;
    const kinds = planned.action.split(", ") as StepKind[];
    const journaled = kinds.flatMap((kind) => STEPS[JOURNALED_AS[kind] ?? kind].journal);
    expect(journaled.map(({ kind }) => kind)).toContain(action.kind);
    expect((planned.changes ?? []).flatMap(({ target }) => target ?? []).join("\n")).toContain(
      action.path ?? action.address ?? "",
    );
  }
}

export async function listedIds(node: LabNode): Promise<readonly string[]> {
  return (await node.cri.listPodSandbox(undefined, CALL)).map(({ id }) => id).toSorted();
}

/** Not listed, no record, no cache file, no address; and the pod can run again with the same name. */
export async function expectGone(node: LabNode, ...pods: readonly Pick<LabPod, "sandboxId" | "ref">[]): Promise<void> {
  const listed = await listedIds(node);
  const records = await node.check(["ctr", "-n", "k8s.io", "containers", "ls", "-q"]);
  const files = cniFiles(node);
  for (const { sandboxId, ref } of pods) {
    expect(listed).not.toContain(sandboxId);
    expect(records).not.toContain(sandboxId);
    expect(files.filter((file) => file.includes(sandboxId))).toEqual([]);
    await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
  }
}

/** Every file below /var/lib/cni; an address file with its content, so that one search finds both. */
export function cniFiles(node: LabNode): readonly string[] {
  return [...treeOf(node.path("/var/lib/cni"))].map(([path, content]) =>
    path.startsWith("networks/") ? `${path} ${content}` : path,
  );
}

/** Path -> content of everything below a directory; for other entries, their type. */
export function treeOf(root: string): ReadonlyMap<string, string> {
  const tree = new Map<string, string>();
  const walk = (dir: string, prefix: string): void => {
    for (const name of readdirSync(dir).toSorted()) {
      const path = join(dir, name);
      const stats = lstatSync(path);
      if (stats.isDirectory()) walk(path, `${prefix}${name}/`);
      else if (stats.isSymbolicLink()) tree.set(prefix + name, `-> ${readlinkSync(path)}`);
      else tree.set(prefix + name, stats.isFile() ? readFileSync(path, "latin1") : "neither file nor directory");
    }
  };
  if (existsSync(root)) walk(root, "");
  return tree;
}

/** Path below the quarantine -> content, of everything that was moved or saved there. */
export function quarantine(node: LabNode): ReadonlyMap<string, string> {
  return treeOf(node.path(`${STATE_DIR}/quarantine`));
}

export function isQuarantined(node: LabNode, path: string): boolean {
  return [...quarantine(node).keys()].some((file) => basename(file).includes(basename(path)));
}

/** Running pods still run, and kept ones still exist with their containers. */
export async function expectAlive(node: LabNode, { ready, kept }: Company): Promise<void> {
  for (const { sandboxId, containerIds } of ready) {
    expect(await stateOf(node, sandboxId)).toBe(PodSandboxState.SANDBOX_READY);
    for (const id of containerIds) {
      const { status } = await node.cri.containerStatus(id, CALL);
      expect(status?.state).toBe(ContainerState.CONTAINER_RUNNING);
    }
  }
  for (const { sandboxId, containerIds } of kept) {
    expect(await stateOf(node, sandboxId)).toBe(PodSandboxState.SANDBOX_NOTREADY);
    for (const id of containerIds) {
      const { status } = await node.cri.containerStatus(id, CALL);
      expect(status?.state).toBe(ContainerState.CONTAINER_EXITED);
      expect(existsSync(node.path(status?.logPath ?? ""))).toBe(true);
    }
  }
}

async function stateOf(node: LabNode, id: SandboxId): Promise<PodSandboxState | undefined> {
  return (await node.cri.podSandboxStatus(id, CALL)).status?.state;
}
