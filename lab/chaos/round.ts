import { setTimeout as sleep } from "node:timers/promises";
import type { NodeReport } from "../../src/report/node-report.ts";
import type { LabNode } from "../node.ts";
import { processesOf } from "../node-processes.ts";
import { finishedPod, type LabPod, runPod, runPods } from "../pods.ts";
import { type Fault, injectOne, type Stage } from "./faults.ts";
import { harmTo, type Protected, protectFinished, protectReady } from "./protected.ts";
import { unaccountedFor } from "./quarantine-check.ts";
import type { Random } from "./random.ts";
import { unseenWaits } from "./waiting-check.ts";

/** A node for many rounds, and the pods that must survive them. */
export interface Arena {
  readonly node: LabNode;
  readonly unghost: string;
  readonly random: Random;
  /** Finished pods stay from round to round, including power cuts. */
  readonly finished: Protected[];
  names: number;
}

export interface RoundResult {
  /** What happened, to find the cause of a failure. */
  readonly story: readonly string[];
  /** Violations; empty on success. */
  readonly complaints: readonly string[];
}

const HEAL = [
  "heal",
  "--yes",
  "--no-kube",
  "--min-age",
  "0s",
  "--inflight-grace",
  "0s",
  "--timeout",
  "30s",
  "-o",
  "json",
];
const HEAL_MS = 300_000;
const MAX_GHOSTS = 4;
const MAX_FAULTS = 5;
const MAX_FINISHED = 6;

/** Pods may die, some faults are injected, a heal may be killed; then a heal must leave a healthy node. */
export async function chaosRound(arena: Arena): Promise<RoundResult> {
  const { node, random } = arena;
  const story: string[] = [];
  const newName = () => `pod-${arena.names++}`;
  const ghosts = await someDead(arena, newName, story);
  const ready = [
    await runPod(node, { name: newName(), containers: [{ name: "main" }] }),
    await runPod(node, { name: newName() }),
  ];
  if (arena.finished.length < MAX_FINISHED) {
    arena.finished.push(await protectFinished(node, await finishedPod(node, { name: newName() })));
  }
  const guarded = [...arena.finished, ...(await Promise.all(ready.map((pod) => protectReady(node, pod))))];

  const newAddress = () => `10.88.201.${arena.names++ % 250}`;
  const faults = await someFaults({ node, random, ghosts, ready, newName, newAddress }, story);
  const repairs = faults.flatMap(({ repair }) => (repair === undefined ? [] : [repair]));
  const waiting = faults.flatMap((fault) => (fault.waiting === undefined ? [] : [fault.waiting]));
  const complaints: string[] = [...(await unseenWaits(node, arena.unghost, waiting))];
  if (random.chance(0.3)) await killedHeal(arena, story);
  const first = await heal(arena);
  story.push(`healed: ${outcomes(first.report)}`);
  complaints.push(...(await allHarm(node, guarded, "after the heal")));
  for (const repair of repairs) await repair();
  const last = repairs.length > 0 ? await heal(arena) : first;
  complaints.push(...leftOver(last), ...(await allHarm(node, guarded, "at the end")), ...(await unaccountedFor(node)));
  await clearAway(arena, ready, story);
  return { story, complaints };
}

/** Pods that die in a power cut, some with containers; none in every second round. */
async function someDead(arena: Arena, newName: () => string, story: string[]): Promise<readonly LabPod[]> {
  const { node, random } = arena;
  if (random.chance(0.4)) return [];
  const bare = await runPods(node, 1 + random.below(MAX_GHOSTS), { name: newName() });
  const full = random.chance(0.5) ? [await runPod(node, { name: newName(), containers: [{ name: "main" }] })] : [];
  await node.powerCut();
  await node.powerOn();
  story.push(`power cut under ${bare.length + full.length} pods`);
  return [...bare, ...full];
}

async function someFaults(stage: Stage, story: string[]): Promise<readonly Fault[]> {
  const faults: Fault[] = [];
  const count = 1 + stage.random.below(MAX_FAULTS);
  for (let injected = 0; injected < count; injected++) {
    const fault: Fault | undefined = await injectOne(stage);
    if (fault === undefined) continue;
    story.push(fault.did);
    faults.push(fault);
  }
  return faults;
}

/** kill -9 at a random moment. */
async function killedHeal({ node, unghost, random }: Arena, story: string[]): Promise<void> {
  const running = node.exec([unghost, ...HEAL], { timeoutMs: HEAL_MS });
  const afterMs = 20 + random.below(400);
  await sleep(afterMs);
  const own = processesOf(node).filter(({ command }) => command.includes("heal") && command.includes(unghost));
  for (const { pid } of own) await node.kill(pid);
  story.push(`a heal was killed after ${afterMs} ms, with code ${(await running).code}`);
}

interface Healed {
  readonly code: number;
  readonly report: NodeReport;
  readonly stderr: string;
}

async function heal({ node, unghost }: Arena): Promise<Healed> {
  const { code, stdout, stderr } = await node.exec([unghost, ...HEAL], { timeoutMs: HEAL_MS });
  try {
    return { code, report: JSON.parse(stdout) as NodeReport, stderr };
  } catch (error) {
    throw new Error(`heal ended with ${code} and without a report: ${stderr}${stdout.slice(0, 500)}`, { cause: error });
  }
}

/** A running pod with a broken cache is not a ghost; everything else that is left was not healed. */
function leftOver({ code, report, stderr }: Healed): readonly string[] {
  if (code === 0) return [];
  const why = new Map(report.actions?.map(({ finding, outcome, reason }) => [finding, `${outcome}, ${reason ?? ""}`]));
  return [
    `heal ended with ${code}: ${stderr}`,
    ...(report.remaining ?? []).map((id) => `left: ${id} (${why.get(id)})`),
  ];
}

async function allHarm(node: LabNode, guarded: readonly Protected[], when: string): Promise<readonly string[]> {
  const harms = await Promise.all(guarded.map((one) => harmTo(node, one)));
  return harms.flat().map((harm) => `${when}: ${harm}`);
}

function outcomes({ actions = [] }: NodeReport): string {
  return actions.map(({ finding, outcome }) => `${finding.slice(0, 60)} ${outcome}`).join("; ") || "nothing to do";
}

/** In half of the rounds the running pods stay and die in the next cut; otherwise they end orderly. */
async function clearAway({ node, random }: Arena, ready: readonly LabPod[], story: string[]): Promise<void> {
  if (random.chance(0.5)) return;
  for (const { sandboxId } of ready) {
    try {
      await node.cri.stopPodSandbox(sandboxId, { timeoutMs: 60_000 });
      await node.cri.removePodSandbox(sandboxId, { timeoutMs: 60_000 });
    } catch (error) {
      // Its cache may have been emptied; it is then a ghost of the next round.
      story.push(`could not be removed in the end: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
