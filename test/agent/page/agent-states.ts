import { readState, type WireSighting, type WireState } from "../../../src/agent/page/wire.ts";
import type {
  AgentState,
  HealItem,
  HealRecord,
  HealRun,
  Sighting,
  Standing,
  TimelinePoint,
} from "../../../src/agent/state/state.ts";
import { stateJson } from "../../../src/agent/state/state-json.ts";
import type { ReportedFinding } from "../../../src/report/node-report.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";

const SANDBOX = "3f9c0de1".repeat(8);

/** An agent that has scanned once, just now, without findings. */
export function healthyState(parts: Partial<AgentState> = {}): AgentState {
  const now = new Date();
  const scan = scanOf({ report: { observedAt: now.toISOString(), sandboxes: { total: 14, ready: 13, notReady: 1 } } });
  return freshState({ node: "edge-7", startedAt: new Date(now.getTime() - 18_000_000), scan, ...parts });
}

export function ghostState(sightings: readonly Sighting[], parts: Partial<AgentState> = {}): AgentState {
  const findings = sightings.map(({ finding }) => finding);
  const scan = scanOf({ report: { observedAt: new Date().toISOString(), verdict: "ghosts", findings } });
  return healthyState({ scan, sightings, ...parts });
}

export interface SightingParts
  extends Partial<
    Pick<ReportedFinding, "class" | "severity" | "summary" | "blocks" | "blockedPods" | "plan" | "treatment">
  > {
  readonly pod?: string;
  readonly standing?: Standing;
}

export function sighting({ pod = "web-0", standing, ...finding }: SightingParts = {}): Sighting {
  return {
    finding: {
      id: `libcni-result-cache-corrupt/${pod}`,
      class: "libcni-result-cache-corrupt",
      severity: "critical",
      subject: { type: "sandbox", sandboxId: SANDBOX, pod: { namespace: "shop", name: pod, uid: "7d1f", attempt: 0 } },
      summary: `The sandbox of shop/${pod} is dead, and each try to stop it fails on an empty CNI result file.`,
      evidence: [
        { source: "cri", fact: "NotReady in list and status, no container of it runs" },
        { source: "cni", fact: `/var/lib/cni/results/cbr0-${SANDBOX}-eth0 is empty` },
      ],
      kind: "ghost",
      since: new Date(Date.now() - 3 * 86_400_000).toISOString(),
      sinceSource: "boot",
      blocks: [`pod shop/${pod}: the name ${pod}_shop_7d1f_0 stays reserved`],
      blockedPods: [{ namespace: "shop", name: pod }],
      treatment: { automatic: true, reversible: true, steps: ["move the file to quarantine", "stop the sandbox"] },
      plan: {
        steps: ["move the broken file to quarantine (undo puts it back)", "remove it through the runtime"],
        reason: "it died with the node",
        code: "died-with-node",
      },
      ...finding,
    },
    firstSeenAt: new Date(Date.now() - 95_000),
    firstSeenMs: performance.now() - 95_000,
    standing: standing ?? { kind: "waiting", message: "It is healed once it has stood for 2m." },
    attempts: 0,
  };
}

export function healRecord(parts: Partial<HealRecord> = {}): HealRecord {
  return {
    at: new Date(Date.now() - 400_000),
    finding: "libcni-result-cache-corrupt/web-0",
    class: "libcni-result-cache-corrupt",
    summary: "Moved the empty CNI result away and stopped the sandbox; its name is free.",
    pod: { namespace: "shop", name: "web-0", uid: "7d1f" },
    outcome: "healed",
    journalId: "0mi2k4x9q-a1b2",
    undo: ["0mi2k4x9q-a1b2"],
    seconds: 1.42,
    ...parts,
  };
}

export function healRun(parts: Partial<HealRun> = {}): HealRun {
  return {
    run: "0mi2k4x9p-0000",
    at: new Date(Date.now() - 400_000).toISOString(),
    by: "agent",
    seconds: 1.42,
    items: [healItem()],
    more: 0,
    ...parts,
  };
}

export function healItem(parts: Partial<HealItem> = {}): HealItem {
  return {
    finding: "libcni-result-cache-corrupt/web-0",
    class: "libcni-result-cache-corrupt",
    subject: "shop/web-0",
    outcome: "done",
    did: ["moved its broken or stale file to quarantine", "saved its logs", "removed the sandbox"],
    undo: ["0mi2k4x9q-a1b2"],
    ...parts,
  };
}

export function point(minute: number, parts: Partial<TimelinePoint> = {}): TimelinePoint {
  return { minute, ghosts: 0, healed: 0, failed: 0, crashRestarts: 0, kernelStalls: 0, ...parts };
}

/** A day with ghosts after two restarts, healed one after the other, and later one that is not. */
export function eventfulDay(nowMs: number): readonly TimelinePoint[] {
  const last = Math.floor(nowMs / 60_000) * 60;
  return Array.from({ length: 1440 }, (_, index) => point(last - (1439 - index) * 60, happening(index)));
}

function happening(index: number): Partial<TimelinePoint> {
  if (index === 400 || index === 401) return { crashRestarts: 1, kernelStalls: 1 };
  if (index > 402 && index < 440) return { ghosts: Math.ceil((440 - index) / 5), healed: index % 5 === 0 ? 1 : 0 };
  if (index === 1000) return { ghosts: 1, failed: 1 };
  return index > 1000 && index < 1100 ? { ghosts: 1 } : {};
}

/** As the page receives it. */
export function onTheWire(state: AgentState): WireState {
  return readState(stateJson(state));
}

export function sightingsOnTheWire(...parts: readonly SightingParts[]): readonly WireSighting[] {
  return onTheWire(ghostState(parts.map(sighting))).sightings;
}
