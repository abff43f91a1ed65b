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
    notices.push({ title: `Nothing is acted upon: ${pauseReason.reason}`, text: pauseReason.message });
  if (breaker.open && pauseReason?.reason !== "breaker") {
    const text = `${breaker.message ?? "An implausible share of the fleet is ill at once."} It closes by itself.`;
    const since = breaker.since === undefined ? {} : { since: breaker.since };
    notices.push({ title: "The fleet's breaker is open", text, ...since });
  }
  if (configProblem !== undefined) {
    const text = `${configProblem} The configuration before it is still in force.`;
    notices.push({ title: "The configuration file was not taken over", text });
  }
  if (openAddress !== undefined) {
    const text = `Every machine that reaches ${openAddress} can read this page and the metrics. Set agent.tokenFile, or listen on 127.0.0.1.`;
    notices.push({ title: "No token is required", text });
  }
  if (version !== pageVersion) {
    const text = `This page is of version ${pageVersion}, the agent of ${version}. Reload without the cache.`;
    notices.push({ title: "Something keeps an old page", text });
  }
  return notices;
}
