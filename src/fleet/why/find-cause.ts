import type { Cause } from "./cause.ts";
import { containerCause } from "./container-cause.ts";
import { type Pod, time, type WhyFacts } from "./facts.ts";
import { bestExplained } from "./message.ts";
import { networkNotReady, nodeGone, nodeNotReady } from "./node-cause.ts";
import { conditionNamed, evidenceOf, notOurs, RETRIED, shortest } from "./parts.ts";
import { beforeItsContainers, ending, reportedByAgent } from "./sandbox-cause.ts";

/** The first rule that has an answer decides: in the order in which a pod comes to life. */
export function findCause(facts: WhyFacts): Cause {
  const { pod } = facts;
  if (pod === undefined) return notCreated(facts);
  for (const rule of RULES) {
    const cause = rule(facts, pod);
    if (cause !== undefined) return cause;
  }
  return unknownCause(facts, pod);
}

type Rule = (facts: WhyFacts, pod: Pod) => Cause | undefined;

const RULES: readonly Rule[] = [
  finished,
  unscheduled,
  nodeGone,
  networkNotReady,
  nodeNotReady,
  reportedByAgent,
  ending,
  containerCause,
  beforeItsContainers,
  starting,
];

function notCreated({ namespace, name, warnings }: WhyFacts): Cause {
  const [warning] = warnings;
  if (warning === undefined) {
    return notOurs(
      "no-pod",
      `There is no pod ${namespace}/${name}, and no controller reports that it may not create it.`,
      { next: "nothing", remedy: `kubectl get pods --namespace=${namespace}` },
    );
  }
  const best = bestExplained(warnings) ?? { warning, meaning: { kind: "unknown" } as const };
  const why = best.meaning.kind === "topic" ? best.meaning.what : shortest(best.warning.message);
  return notOurs("not-created", `${best.warning.about} may not create the pod: ${why}`, {
    evidence: [evidenceOf(best.warning)],
    since: best.warning.firstAt,
    next: "the controller tries again with a growing delay",
    remedy: best.meaning.kind === "topic" ? best.meaning.goTo : undefined,
  });
}

function finished({ namespace, name }: WhyFacts, { metadata, status }: Pod): Cause | undefined {
  if (metadata.deletionTimestamp) return undefined;
  if (status?.reason === "Evicted") {
    return notOurs("evicted", `Kubelet evicted it: ${shortest(status.message ?? "")}`, {
      next: "its controller creates another pod, if it has one",
      remedy: `kubectl delete pod --namespace=${namespace} ${name}`,
    });
  }
  if (status?.phase === "Succeeded") return notOurs("finished", "It has finished.", { next: "nothing" });
  const ready = conditionNamed(status?.conditions, "Ready");
  if (ready?.status !== "True") return undefined;
  return notOurs("running", "It runs, and is ready.", { since: time(ready.lastTransitionTime), next: "nothing" });
}

function unscheduled({ warnings }: WhyFacts, { spec, status, metadata }: Pod): Cause | undefined {
  if (spec.nodeName || metadata.deletionTimestamp) return undefined;
  const scheduled = conditionNamed(status?.conditions, "PodScheduled");
  const since = time(scheduled?.lastTransitionTime, metadata.creationTimestamp);
  const [gate] = spec.schedulingGates ?? [];
  if (gate !== undefined) {
    return notOurs("gated", `A scheduling gate holds it: ${gate.name}.`, {
      since,
      next: "it is scheduled once the gate's controller removes the gate",
    });
  }
  const warning = warnings.find(({ reason }) => reason === "FailedScheduling");
  const message = scheduled?.message || warning?.message;
  const what = message
    ? `The scheduler finds no node for it: ${shortest(message)}`
    : "No scheduler has taken it: there is neither a node nor a reason.";
  return notOurs("unscheduled", what, {
    since,
    evidence: scheduled?.message ? [{ source: "scheduler", fact: `PodScheduled is False: ${scheduled.message}` }] : [],
    next: "the scheduler tries again when nodes, pods or volumes change",
    remedy: "free or add resources, or change what the pod asks for",
  });
}

function starting({ now }: WhyFacts, { status, metadata }: Pod): Cause | undefined {
  if (status?.phase !== "Pending" && status?.phase !== "Running") return undefined;
  const since = time(conditionNamed(status.conditions, "PodScheduled")?.lastTransitionTime, metadata.creationTimestamp);
  const isLate = since !== undefined && now.getTime() - since.getTime() > LATE_MS;
  if (isLate) return undefined;
  return notOurs("starting", "It is starting: nothing has failed yet.", { since, next: "wait, then ask again" });
}

/** A start without any event should be over by then. */
const LATE_MS = 60_000;

function unknownCause({ namespace, name, problems }: WhyFacts, { spec, status }: Pod): Cause {
  const unread = problems.length === 0 ? "" : `; not read: ${problems.join("; ")}`;
  const sandbox = conditionNamed(status?.conditions, "PodReadyToStartContainers");
  // Kubelet has had a message there since 1.37.
  const message = (sandbox?.status === "False" && sandbox.message) || undefined;
  const what =
    message === undefined
      ? `Nothing in the API shows why it does not start${unread}.`
      : `It has no usable sandbox (kubelet: ${shortest(message)}), and no event shows why${unread}.`;
  return notOurs("unknown", what, {
    since: message === undefined ? undefined : time(sandbox?.lastTransitionTime),
    evidence:
      message === undefined ? [] : [{ source: "kubelet", fact: `PodReadyToStartContainers is False: ${message}` }],
    next: RETRIED,
    remedy: `on ${spec.nodeName ?? "its node"}: unghost scan ${namespace}/${name}, and unghost explain --journal`,
  });
}
