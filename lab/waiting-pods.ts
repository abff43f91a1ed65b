import { existsSync, readFileSync } from "node:fs";
import { type PodSandbox, PodSandboxState } from "../src/runtime/gen/runtime/v1/cri.ts";
import { KUBELET_LOG } from "./kubelet-log.ts";
import type { LabNode } from "./node.ts";
import { type NodeProcess, processesOf } from "./node-processes.ts";
import { identify } from "./process-identity.ts";

/** A pod without a sandbox after a timeout of kubelet's attempt to create it. */
export interface WaitingPod {
  readonly uid: string;
  /** `namespace/name`. */
  readonly pod: string;
  /** When kubelet timed out. */
  readonly since: Date;
  /** Whether that attempt still runs. */
  readonly hangs: boolean;
}

/** Kubelet's default timeout of RunPodSandbox: twice its runtimeRequestTimeout. */
const RUN_TIMEOUT_MS = 240_000;
const CALL = { timeoutMs: 30_000 } as const;
const MS_PER_TICK = 10;

/**
 * The reference for a verdict, independent of unghost: the processes of the node, the log of its kubelet (or of its
 * substitute), kubelet's pod directories and the runtime's list.
 */
export async function waitingPods(node: LabNode): Promise<readonly WaitingPod[]> {
  if (!node.powered) return [];
  const processes = processesOf(node);
  if (!processes.some(isKubelet)) return [];
  const attempts = attemptsUnderWay(node, processes);
  const waiting = [...timedOut(attempts), ...givenUp(node, attempts)].filter(({ uid }) =>
    existsSync(node.path(`/var/lib/kubelet/pods/${uid}`)),
  );
  if (waiting.length === 0) return [];
  const sandboxes = await node.cri.listPodSandbox(undefined, CALL).catch(() => []);
  return waiting.filter((pod) => !sandboxes.some((sandbox) => isSandboxOf(sandbox, pod)));
}

/** It runs, or was created after kubelet's timeout and has ended since. */
function isSandboxOf({ metadata, state, createdAt }: PodSandbox, { uid, since, hangs }: WaitingPod): boolean {
  if (metadata?.uid !== uid) return false;
  return state === PodSandboxState.SANDBOX_READY || (!hangs && createdAt > BigInt(since.getTime()) * 1_000_000n);
}

/** By its program, or by the script of its name. */
function isKubelet({ command }: NodeProcess): boolean {
  return command.slice(0, 2).some((word) => word.endsWith("/kubelet"));
}

interface Attempt {
  readonly uid: string;
  readonly pod: string;
  readonly startedAt: Date;
}

function attemptsUnderWay(node: LabNode, processes: readonly NodeProcess[]): readonly Attempt[] {
  return processes.flatMap(({ pid, environment }) => {
    if (environment.get("CNI_COMMAND") !== "ADD") return [];
    const pairs = (environment.get("CNI_ARGS") ?? "").split(";").map((pair) => pair.split("="));
    const args = new Map(pairs.map(([key = "", value = ""]) => [key, value]));
    const uid = args.get("K8S_POD_UID");
    const startedAt = startOf(node, pid);
    if (uid === undefined || startedAt === undefined) return [];
    return [{ uid, pod: `${args.get("K8S_POD_NAMESPACE")}/${args.get("K8S_POD_NAME")}`, startedAt }];
  });
}

/** Returns undefined if the process is gone. */
function startOf(node: LabNode, pid: number): Date | undefined {
  const found = identify(pid, node.livePath("/proc"));
  if (found === undefined) return undefined;
  const startedMs = Number(found.startTicks) * MS_PER_TICK;
  const uptimeMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  return new Date(Date.now() - uptimeMs + startedMs);
}

function timedOut(attempts: readonly Attempt[]): readonly WaitingPod[] {
  return attempts
    .map(({ uid, pod, startedAt }) => ({
      uid,
      pod,
      since: new Date(startedAt.getTime() + RUN_TIMEOUT_MS),
      hangs: true,
    }))
    .filter(({ since }) => since.getTime() < Date.now());
}

const FAILED =
  /^E(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3}).*CreatePodSandboxError.* pod="([^"]+)" podUID="([^"]+)"$/gm;

/** Kubelet's log lines of this boot. */
function givenUp(node: LabNode, attempts: readonly Attempt[]): readonly WaitingPod[] {
  const log = node.path(KUBELET_LOG);
  const bootedAt = startOf(node, 1);
  if (!existsSync(log) || bootedAt === undefined) return [];
  const failures = [...readFileSync(log, "utf8").matchAll(FAILED)]
    .map((match) => {
      const [month = 1, day = 1, hour = 0, minute = 0, second = 0, ms = 0] = match.slice(1, 7).map(Number);
      const since = new Date(new Date().getFullYear(), month - 1, day, hour, minute, second, ms);
      const [pod = "", uid = ""] = match.slice(7);
      return { uid, pod, since };
    })
    .filter(({ since }) => since >= bootedAt);
  return [...Map.groupBy(failures, ({ uid }) => uid).values()].map((ofPod) => {
    const last = ofPod.reduce((one, other) => (other.since > one.since ? other : one));
    const hangs = attempts.some(({ uid, startedAt }) => uid === last.uid && startedAt < last.since);
    return { ...last, hangs };
  });
}
