import type { FailureClass } from "../../classes/failure-class.ts";
import { classes } from "../../classes/index.ts";
import type { AgentPolicy, ClassPolicy } from "./agent-policy.ts";

type Budget = Omit<ClassPolicy, "mode">;

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** A pod waits for it: every second counts, and the diagnosis has already waited for a recovering kubelet. */
const BLOCKING: Budget = { minAgeMs: 0, attempts: 5, attemptsWithinMs: HOUR_MS, coolDownMs: 30 * SECOND_MS };
/** No pod waits for it. A busy runtime leaves such files for moments all the time. */
const LEAK: Budget = {
  minAgeMs: 5 * MINUTE_MS,
  attempts: 3,
  attemptsWithinMs: 6 * HOUR_MS,
  coolDownMs: 10 * MINUTE_MS,
};
/** Healed only with consent (`agent.classes.<class>: heal`), so it is not retried often. */
const ATTENDED: Budget = {
  minAgeMs: 10 * MINUTE_MS,
  attempts: 2,
  attemptsWithinMs: 24 * HOUR_MS,
  coolDownMs: 30 * MINUTE_MS,
};

/** Defaults without a configured value: automatic classes are healed, the rest is observed. */
export function defaultAgentPolicy(): AgentPolicy {
  return {
    classes: new Map(classes.map((known) => [known.id, defaultClassPolicy(known)])),
    scanEveryMs: MINUTE_MS,
    maintenanceWindows: [],
    ignoredNamespaces: [],
    recreatePods: false,
    keepDurable: true,
    quarantineRetentionMs: 30 * 24 * HOUR_MS,
    cap: 250,
    fleet: { slots: 3, namespace: "unghost", breakerShare: 0.3, breakerLeast: 3 },
  };
}

function defaultClassPolicy({ category, treatment }: FailureClass): ClassPolicy {
  if (treatment.mode !== "automatic") return { mode: "observe", ...ATTENDED };
  return { mode: "heal", ...(category === "leak" ? LEAK : BLOCKING) };
}
