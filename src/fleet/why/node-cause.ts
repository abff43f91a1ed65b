import type { Cause } from "./cause.ts";
import { type Condition, type Node, type Pod, time, type WhyFacts } from "./facts.ts";
import { bestExplained } from "./message.ts";
import { conditionNamed, evidenceOf, notOurs, shortest } from "./parts.ts";

export function nodeGone({ node, problems }: WhyFacts, { spec }: Pod): Cause | undefined {
  if (node !== undefined || problems.length > 0) return undefined;
  return notOurs("node-gone", `Its node ${spec.nodeName ?? ""} does not exist any more.`, {
    next: "the control plane deletes the pod after some minutes",
  });
}

/** Before the rule for NotReady, which it causes. */
export function networkNotReady({ node, warnings }: WhyFacts): Cause | undefined {
  const ready = readyOf(node);
  const message =
    ready?.status === "False" && /network ?plugin|NetworkReady=false/i.test(ready.message ?? "")
      ? ready.message
      : undefined;
  const warning = warnings.find(({ reason }) => reason === "NetworkNotReady");
  if (!message && (warning === undefined || ready?.status === "True")) return undefined;
  const best = bestExplained([
    ...(warning === undefined ? [] : [warning]),
    { by: "kubelet", about: "Node", reason: "", message: message ?? "", count: 1 },
  ]);
  const failureClass = best?.meaning.kind === "class" ? best.meaning.failureClass : undefined;
  return {
    code: "network-not-ready",
    class: failureClass?.id,
    what: `The node ${node?.metadata.name ?? ""} has no usable pod network: ${failureClass?.title ?? shortest(message ?? warning?.message ?? "")}.`,
    isOurs: false,
    evidence: [
      ...(message ? [{ source: "kubelet", fact: `the node is NotReady: ${message}` }] : []),
      ...(warning === undefined ? [] : [evidenceOf(warning)]),
    ],
    since: time(ready?.lastTransitionTime),
    blocks: [`every pod on ${node?.metadata.name ?? "this node"} without host network`],
    next: "pods start once the network add-on has written its configuration",
    remedy: failureClass?.byHand[0] ?? "check the pods of the network add-on on this node",
  };
}

export function nodeNotReady({ node, report }: WhyFacts): Cause | undefined {
  const ready = readyOf(node);
  if (ready === undefined || ready.status === "True") return undefined;
  const name = node?.metadata.name ?? "";
  const isSilent = ready.status === "Unknown";
  const finding = report?.findings?.[0];
  return {
    code: "node-not-ready",
    class: finding?.class,
    what: isSilent
      ? `Its node ${name} is NotReady: kubelet has stopped reporting.`
      : `Its node ${name} is NotReady: ${shortest(ready.message ?? ready.reason ?? "")}`,
    isOurs: false,
    evidence: [
      { source: "node", fact: `Ready is ${ready.status}: ${ready.reason ?? ""} ${ready.message ?? ""}`.trim() },
      ...(finding === undefined ? [] : [{ source: `agent of ${name}`, fact: finding.summary }]),
    ],
    since: time(ready.lastTransitionTime),
    blocks: [`every pod that should start on ${name}`],
    next: "pods of controllers are replaced on other nodes after five minutes",
    remedy: isSilent
      ? `check power, network and kubelet of ${name}`
      : `on ${name}: unghost scan, journalctl -u kubelet`,
  };
}

function readyOf(node: Node | undefined): Condition | undefined {
  return conditionNamed(node?.status?.conditions, "Ready");
}
