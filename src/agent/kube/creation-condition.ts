import type { NodeReport } from "../../report/node-report.ts";
import { CANNOT_CREATE } from "../../report/node-state.ts";
import { apiTime } from "../../report/node-summary.ts";
import { podWords } from "../../report/pending.ts";
import type { AgentState, ScanState } from "../state/state.ts";
import { type Condition, isOverdue, OVERDUE, withSafeMessage } from "./condition.ts";

type Creation = NonNullable<NodeReport["podCreation"]>;

const MOST_PODS = 3;

/**
 * The node condition `SandboxCreation`: whether this node can create the sandbox of a pod. Unlike GhostSandboxes True is
 * good, as with Ready: controllers that hold back pods, drain or reboot wait for a capability.
 */
export function creationConditionOf({ scan }: AgentState, nowMs: number): Condition | undefined {
  return scan && withSafeMessage(isOverdue(scan, nowMs) ? OVERDUE : assess(scan));
}

function assess({ report }: ScanState): Condition {
  const { podCreation } = report;
  if (podCreation === undefined) {
    const message = "The last scan could not read what the container runtime creates";
    return { status: "Unknown", reason: "NodeUnreadable", message };
  }
  const passing = passingWords(podCreation);
  switch (podCreation.able) {
    case "yes":
      return { status: "True", reason: "SandboxesCreated", message: "This node creates pod sandboxes", passing };
    case "no":
      return { status: "False", reason: "SandboxCreationFails", message: failureWords(report, podCreation), passing };
    case "unknown":
      return {
        status: "Unknown",
        reason: "NoSandboxCreatedYet",
        message: "Nothing on this node shows whether it can create pod sandboxes",
        passing,
      };
  }
}

/** Without times, which would be a write to the API with each attempt. */
function failureWords({ findings }: NodeReport, { lastFailure, blockedPods }: Creation): string {
  const classes = [...new Set(findings.filter(({ blocks }) => blocks.length > 0).map((one) => one.class))].toSorted();
  const cause = [...classes.slice(0, MOST_PODS), ...(lastFailure === undefined ? [] : [lastFailure.code])];
  const pods = [...new Set(blockedPods.map(podWords))].toSorted();
  const more = pods.length > MOST_PODS ? ` and ${pods.length - MOST_PODS} more` : "";
  return [
    `T${CANNOT_CREATE.slice(1)}`,
    ...(cause.length === 0 ? [] : [`cause: ${cause.join(", ")}`]),
    ...(pods.length === 0 ? [] : [`blocked: ${pods.slice(0, MOST_PODS).join(", ")}${more}`]),
  ].join("; ");
}

/** `success 2026-03-01T12:00:00Z (shop/web-0); last failure …` */
function passingWords({ lastSuccess, lastFailure }: Creation): string | undefined {
  const success = lastSuccess && `success ${apiTime(new Date(lastSuccess.at))} (${podWords(lastSuccess.pod)})`;
  const at = lastFailure?.at === undefined ? "" : ` ${apiTime(new Date(lastFailure.at))}`;
  const pod = lastFailure?.pod === undefined ? "" : ` (${podWords(lastFailure.pod)})`;
  const failure = lastFailure && `failure${at}${pod}: ${lastFailure.message}`;
  return [success, failure].filter((part) => part !== undefined).join("; last ") || undefined;
}
