import { sentence } from "../../report/words.ts";
import type { WireState } from "./wire.ts";

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
    const since = breaker.since === undefined ? {} : { since: breaker.since };
    notices.push({ title: "The fleet's breaker is open", text, ...since });
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
