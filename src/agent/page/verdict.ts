import { isFailing } from "../../evidence/pending.ts";
import { count, countByKind, sentence } from "../../report/words.ts";
import type { WireSighting, WireState } from "./wire.ts";
import { listed } from "./words.ts";

/** `good`: nothing to do. `busy`: the agent heals it. `bad`: manual steps are needed. `unsure`: unknown. */
export type Tone = "good" | "busy" | "bad" | "unsure";

export interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly detail: string;
}

export function pageVerdict(state: WireState): Verdict {
  const { scan, sightings, node } = state;
  if (scan === undefined) {
    const detail = `The agent on ${node} has started its first scan.`;
    return { tone: "unsure", headline: "First scan running", detail };
  }
  if (sightings.length > 0) return ghosts(sightings);
  if (scan.report.verdict === "unknown") {
    const unread = scan.report.problems.map(({ source }) => source).join(", ");
    const detail = `The last scan could not read ${unread === "" ? "every source" : unread}. See Sources.`;
    return { tone: "unsure", headline: "Unknown", detail };
  }
  if (scan.report.verdict === "degraded") {
    const failing = (scan.report.pending ?? []).filter(isFailing).length;
    const detail = `Kubelet reports ${count(failing, "failure")} on ${node}; see Pending.`;
    const headline = scan.report.podCreation?.able === "no" ? "No pods start" : "Degraded";
    return { tone: "bad", headline, detail };
  }
  // A finding of a class that policy turns off is in the report and not among the sightings.
  return { tone: "good", headline: "Healthy", detail: `No ghosts on ${node}.` };
}

function ghosts(sightings: readonly WireSighting[]): Verdict {
  return {
    tone: sightings.some(isManual) ? "bad" : "busy",
    headline: countByKind(sightings.map(({ finding }) => finding)),
    detail: standingInWords(sightings),
  };
}

function isManual({ standing, finding }: WireSighting): boolean {
  return standing.kind === "given-up" || (standing.kind === "observed" && finding.severity === "critical");
}

export function standingInWords(sightings: readonly WireSighting[]): string {
  const of = (kind: WireSighting["standing"]["kind"]): number =>
    sightings.filter(({ standing }) => standing.kind === kind).length;
  return listed([
    [of("healing"), "being healed"],
    [of("waiting"), "waiting to be healed"],
    [of("observed"), "observed only"],
    [of("given-up"), "given up"],
  ]);
}

const RELOADED_FOR = "unghost-reloaded-for";

/** One reload brings the new agent's page; a cache in between that keeps the old one must not make it a loop. */
export function shouldReload(
  pageVersion: string,
  agentVersion: string,
  memory: Pick<Storage, "getItem" | "setItem">,
): boolean {
  if (pageVersion === agentVersion || memory.getItem(RELOADED_FOR) === agentVersion) return false;
  memory.setItem(RELOADED_FOR, agentVersion);
  return true;
}

interface Notice {
  readonly title: string;
  readonly text: string;
  /** ISO time. */
  readonly since?: string;
}

/** Why healing is paused, or differs from the configuration. */
export function noticesOf(
  { pauseReason, breaker, configProblem, openAddress, version }: WireState,
  pageVersion: string,
): readonly Notice[] {
  const notices: Notice[] = [];
  if (pauseReason !== undefined)
    notices.push({ title: `Healing is on hold: ${pauseReason.reason}`, text: sentence(pauseReason.message) });
  if (breaker.open && pauseReason?.reason !== "breaker") {
    const text = `${breaker.message ?? "An implausible share of the fleet is unhealthy."} It closes automatically.`;
    notices.push({ title: "The fleet's breaker is open", text, since: breaker.since });
  }
  if (configProblem !== undefined) {
    const text = `${sentence(configProblem)} The previous configuration stays active.`;
    notices.push({ title: "New configuration rejected", text });
  }
  if (openAddress !== undefined) {
    const text = `Every machine that reaches ${openAddress} can read this page and the metrics. Set agent.tokenFile, or listen on 127.0.0.1.`;
    notices.push({ title: "No token is required", text });
  }
  if (version !== pageVersion) {
    const text = `This page is version ${pageVersion}, the agent is version ${version}. Reload without the cache.`;
    notices.push({ title: "This page is out of date", text });
  }
  return notices;
}
