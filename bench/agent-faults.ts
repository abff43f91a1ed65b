import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../lab/chaos/random.ts";
import type { SimulatedNode } from "../lab/simulated/node.ts";
import type { CriClient } from "../src/runtime/cri.ts";

/** A node with active faults, which are removed at the end. */
export interface SoakStage {
  readonly node: SimulatedNode;
  readonly cri: CriClient;
  readonly random: Random;
  /** Error texts of DEL by sandbox id, until they are removed. */
  readonly refusals: Map<string, string>;
  /** Sandbox ids whose plugin hangs, until they are removed. */
  readonly hangs: Set<string>;
}

type Fault = (stage: SoakStage) => Promise<void> | void;

const CALL = { timeoutMs: 10_000 };
const TROUBLE = 'level=error msg="StopPodSandbox failed" error="failed to destroy network for sandbox: something"\n';

/** Weighted by repetition. */
const FAULTS: readonly Fault[] = [
  dead,
  dead,
  halfMade,
  halfMade,
  cutCacheUnderStop,
  cutCacheUnderStop,
  cutCacheOfDead,
  refusedDel,
  hungDel,
  orphanedCache,
  strangeEntry,
  finished,
  logFlood,
  briefly("mute"),
  briefly("starting"),
  ({ node }) => node.restart(),
  ({ node }) => node.powerCut(),
];

export async function injectFault(stage: SoakStage): Promise<void> {
  await stage.random.pick(FAULTS)(stage);
}

/** Removes all injected obstacles. */
export function liftFaults({ node, refusals, hangs }: SoakStage): void {
  refusals.clear();
  hangs.clear();
  node.script({ delErrors: {}, hangs: [], mode: "serving" });
}

function dead({ node, random }: SoakStage): void {
  node.addSandboxes(1 + random.below(3), { state: "dead" });
}

function halfMade({ node, random }: SoakStage): void {
  node.addSandboxes(1 + random.below(2), { state: "half-made" });
}

function finished({ node }: SoakStage): void {
  node.addSandboxes(1, { state: "finished" });
}

/** The stop of a running pod fails on its truncated cache, as after a file system crash. */
async function cutCacheUnderStop({ node, cri }: SoakStage): Promise<void> {
  const [id = ""] = node.addSandboxes(1, { state: "ready" });
  truncateSync(resultOf(node, id), 0);
  await cri.stopPodSandbox(id, CALL).catch((error: unknown) => {
    if (!String(error).includes("cached result")) throw error;
  });
}

function cutCacheOfDead({ node, random }: SoakStage): void {
  const [id = ""] = node.addSandboxes(1, { state: "dead" });
  truncateSync(resultOf(node, id), random.below(40));
}

function refusedDel({ node, refusals }: SoakStage): void {
  const [id = ""] = node.addSandboxes(1, { state: "dead" });
  refusals.set(id, 'plugin type="bridge" failed (delete): device or resource busy');
  node.script({ delErrors: Object.fromEntries(refusals) });
}

function hungDel({ node, hangs }: SoakStage): void {
  const [id = ""] = node.addSandboxes(1, { state: "dead" });
  hangs.add(id);
  node.script({ hangs: [...hangs] });
}

/** Of an unknown sandbox, from before the last boot. */
function orphanedCache({ node }: SoakStage): void {
  const path = resultOf(node, randomBytes(32).toString("hex"));
  writeFileSync(path, JSON.stringify({ kind: "cniCacheV1", result: { cniVersion: "1.0.0" } }));
  const longAgo = Date.now() / 1000 - 86_400;
  utimesSync(path, longAgo, longAgo);
}

/** Has the name of a cache file and is none; it is never touched, and stays for the rest of the run. */
function strangeEntry({ node, random }: SoakStage): void {
  const path = resultOf(node, `${"0".repeat(63)}${random.below(10)}`);
  try {
    if (random.chance(0.5)) symlinkSync("/nowhere/at/all", path);
    else mkdirSync(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function logFlood({ node, random }: SoakStage): void {
  const path = join(node.root, "var/log/containerd.log");
  mkdirSync(dirname(path), { recursive: true });
  if (random.chance(0.2)) writeFileSync(path, "");
  appendFileSync(path, TROUBLE.repeat(1 + random.below(2000)));
}

function briefly(mode: "mute" | "starting"): Fault {
  return async ({ node, random }) => {
    node.script({ mode });
    await sleep(random.below(100));
    node.script({ mode: "serving" });
  };
}

function resultOf({ root }: SimulatedNode, id: string): string {
  return join(root, `var/lib/cni/results/cbr0-${id}-eth0`);
}
