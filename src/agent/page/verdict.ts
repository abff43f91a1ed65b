import {
  CANNOT_CREATE,
  creationHeading,
  foundWords,
  NODE_STATE_HEADINGS,
  retryWords,
} from "../../report/node-state.ts";
import { creationWords } from "../../report/pending.ts";
import { countByKind, sentence } from "../../report/words.ts";
import type { WireReport, WireSighting, WireState } from "./wire.ts";
import { listed } from "./words.ts";

/** `good`: nothing to do. `busy`: the agent heals it. `bad`: manual steps are needed. `unsure`: unknown. */
export type Tone = "good" | "busy" | "bad" | "unsure";

export interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly detail: string;
}

export function pageVerdict(state: WireState): Verdict {
  const { scan, scanFailure, node } = state;
  if (scan === undefined) {
    const detail = `The agent on ${node} has started its first scan.`;
    return { tone: "unsure", headline: "First scan running", detail };
  }
  const { report } = scan;
  const verdict = withCreation(judged(state, report, node), report);
  if (scanFailure === undefined) return verdict;
  const detail = `${sentence(`the last scan failed: ${scanFailure}`)} Before it: ${verdict.headline}. ${verdict.detail}`;
  return { tone: "unsure", headline: NODE_STATE_HEADINGS.unknown, detail };
}

/** What was found, in the words of `unghost scan`. */
function judged({ sightings }: WireState, report: WireReport, node: string): Verdict {
  if (sightings.length > 0) return ghosts(sightings);
  // A finding of a class that policy turns off is in the report and not among the sightings.
  const verdict = report.verdict === "ghosts" ? "healthy" : report.verdict;
  const headline = NODE_STATE_HEADINGS[verdict];
  const words = sentence(foundWords({ ...report, verdict, findings: [] }, node));
  const unread = [...new Set(report.problems.map(({ source }) => source))].join(", ");
  const more = unread === "" ? "" : ` Could not read: ${unread}; see Sources.`;
  if (verdict === "healthy") return { tone: unread === "" ? "good" : "unsure", headline, detail: words + more };
  return verdict === "degraded"
    ? { tone: "bad", headline, detail: `${words} See Pending.` }
    : { tone: "unsure", headline, detail: words + more };
}

/** A node that cannot start pods is reported first, as on the command line. */
function withCreation(verdict: Verdict, report: WireReport): Verdict {
  const heading = creationHeading(report);
  if (heading === undefined || report.podCreation === undefined) return verdict;
  const words = sentence(creationWords(report.podCreation) ?? CANNOT_CREATE);
  const found =
    verdict.tone === "good" || verdict.headline === NODE_STATE_HEADINGS.degraded
      ? ""
      : ` ${sentence(verdict.headline)}`;
  return { tone: "bad", headline: heading, detail: `${words}${found} ${verdict.detail}` };
}

function ghosts(sightings: readonly WireSighting[]): Verdict {
  return {
    tone: sightings.some(needsAttention) ? "bad" : "busy",
    headline: countByKind(sightings.map(({ finding }) => finding)),
    detail: standingInWords(sightings),
  };
}

/** The command line reports it in red, and no agent heals it. */
function needsAttention({ standing, finding }: WireSighting): boolean {
  return standing.kind === "given-up" || (standing.kind === "observed" && finding.severity !== "info");
}

export function standingInWords(sightings: readonly WireSighting[]): string {
  const of = (kind: WireSighting["standing"]["kind"]): number =>
    sightings.filter(({ standing }) => standing.kind === kind).length;
  const failed = sightings.filter((one) => one.standing.kind === "waiting" && timesFailed(one) > 0).length;
  return listed([
    [of("healing"), "being healed"],
    [of("waiting") - failed, "waiting to be healed"],
    [failed, "failed, tried again"],
    [of("observed"), "observed only"],
    [of("given-up"), "given up"],
  ]);
}

/** `failed 2×, next try at …`; undefined before the first failure. */
export function triesInWords(sighting: WireSighting): string | undefined {
  const { standing, nextTryAt } = sighting;
  const at = nextTryAt?.replace(".000Z", "Z");
  return retryWords({ times: timesFailed(sighting), nextTryAt: at, givenUp: standing.kind === "given-up" });
}

function timesFailed({ finding }: WireSighting): number {
  return finding.failedHeals?.times ?? 0;
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

export interface Notice {
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
