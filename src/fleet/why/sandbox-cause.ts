import { classById } from "../../classes/index.ts";
import { sentence } from "../../report/words.ts";
import type { Cause, CauseCode } from "./cause.ts";
import { type Pod, time, type Warning, type WhyFacts } from "./facts.ts";
import { bestExplained, type Meant } from "./message.ts";
import { conditionNamed, evidenceOf, healCommand, notOurs, RETRIED, shortest } from "./parts.ts";

const PROBLEMS: Readonly<Record<string, { readonly code: CauseCode }>> = {
  FailedAttachVolume: { code: "volume" },
  FailedMount: { code: "volume" },
  FailedMapVolume: { code: "volume" },
  FailedCreatePodSandBox: { code: "sandbox" },
  FailedKillPod: { code: "sandbox" },
  NetworkNotReady: { code: "network-not-ready" },
};

/** What the agent of the node has found about this pod. */
export function reportedByAgent(facts: WhyFacts, { spec, metadata }: Pod): Cause | undefined {
  const { report, namespace, name } = facts;
  const words = `${namespace}/${name}`;
  const findings = report?.findings ?? [];
  const ofPod = findings.filter(({ pod, severity }) => pod === words && severity !== "info");
  const blocking = report?.blockedPods?.includes(words) === true ? findings.filter(({ blocks }) => blocks > 0) : [];
  const [finding] = [...ofPod.filter(({ blocks }) => blocks > 0 || metadata.deletionTimestamp), ...blocking];
  if (finding === undefined) return undefined;
  const failureClass = classById(finding.class);
  const best = bestExplained(facts.warnings);
  return {
    code: failureClass?.category === "storage" ? "volume" : "sandbox",
    class: finding.class,
    what: `${failureClass?.title ?? finding.class}: ${sentence(finding.summary)}`,
    isOurs: true,
    evidence: [
      { source: `agent of ${spec.nodeName ?? ""}`, fact: finding.summary },
      ...(best === undefined ? [] : [evidenceOf(best.warning)]),
    ],
    since: time(finding.since),
    blocks: (report?.blockedPods ?? []).filter((pod) => pod !== words),
    next: nextOf(finding.standing, report?.notHealing),
    remedy: finding.next ?? healCommand(facts, spec.nodeName, failureClass),
  };
}

function nextOf(standing: string, notHealing: string | undefined): string {
  if (notHealing !== undefined) return notHealing;
  switch (standing) {
    case "healing":
      return "the agent is healing it now";
    case "waiting":
      return "the agent heals it once it has lasted long enough";
    case "given-up":
      return "the agent has stopped trying: manual steps are needed";
    default:
      return "the agent only reports it: nothing changes without a repair";
  }
}

/** A pod that is deleted and does not go. */
export function ending(facts: WhyFacts, { metadata, spec }: Pod): Cause | undefined {
  if (!metadata.deletionTimestamp) return undefined;
  const since = time(metadata.deletionTimestamp);
  const kill = facts.warnings.filter(({ reason }) => reason === "FailedKillPod");
  const best = bestExplained(kill);
  if (best !== undefined) return sandboxCause(facts, { best, verb: "Removing its sandbox fails", since, spec });
  const [finalizer] = metadata.finalizers ?? [];
  if (finalizer !== undefined) {
    return notOurs("finalizer", `Its deletion waits for the controller of the finalizer ${finalizer}.`, {
      since,
      next: "it goes once that controller removes its finalizer",
    });
  }
  return notOurs("unknown", "It is being deleted, and nothing in the API shows what holds it.", {
    since,
    next: RETRIED,
    remedy: `on ${spec.nodeName ?? "its node"}: unghost scan ${facts.namespace}/${facts.name}`,
  });
}

/** Volumes first, then the sandbox: kubelet does not create it before they are mounted. */
export function beforeItsContainers(facts: WhyFacts, { spec, status }: Pod): Cause | undefined {
  const hasSandbox = conditionNamed(status?.conditions, "PodReadyToStartContainers");
  if (hasSandbox?.status === "True") return undefined;
  const since = time(
    hasSandbox?.lastTransitionTime,
    conditionNamed(status?.conditions, "PodScheduled")?.lastTransitionTime,
  );
  const failing = facts.warnings.filter(({ reason }) => PROBLEMS[reason] !== undefined);
  const newest = PROBLEMS[failing[0]?.reason ?? ""]?.code;
  const best = bestExplained(failing.filter(({ reason }) => PROBLEMS[reason]?.code === newest));
  if (best === undefined) return undefined;
  if (newest === "volume") return volumeCause(best, since);
  return sandboxCause(facts, { best, verb: "Creating its sandbox fails", since, spec });
}

interface SandboxParts {
  readonly best: Meant;
  readonly verb: string;
  readonly since: Date | undefined;
  readonly spec: Pod["spec"];
}

function sandboxCause(facts: WhyFacts, { best: { warning, meaning }, verb, since, spec }: SandboxParts): Cause {
  const isOurs = meaning.kind === "class" || meaning.kind === "unknown" || meaning.kind === "failure";
  const failureClass = meaning.kind === "class" ? meaning.failureClass : undefined;
  const creation = facts.report?.podCreation;
  return {
    code: "sandbox",
    class: failureClass?.id,
    what: `${verb}: ${meaningWords(warning, meaning)}`,
    isOurs,
    evidence: [
      evidenceOf(warning),
      ...(creation?.able === "no"
        ? [
            {
              source: `agent of ${spec.nodeName ?? ""}`,
              fact: `this node cannot create pods: ${creation.message ?? ""}`,
            },
          ]
        : []),
    ],
    since: since ?? warning.firstAt,
    blocks: (facts.report?.blockedPods ?? []).filter((pod) => pod !== `${facts.namespace}/${facts.name}`),
    next: RETRIED,
    remedy: meaning.kind === "topic" ? meaning.goTo : healCommand(facts, spec.nodeName, failureClass),
  };
}

function volumeCause({ warning, meaning }: Meant, since: Date | undefined): Cause {
  const failureClass = meaning.kind === "class" ? meaning.failureClass : undefined;
  return {
    code: "volume",
    class: failureClass?.id,
    what: `A volume is not ${warning.reason === "FailedAttachVolume" ? "attached" : "mounted"}: ${meaningWords(warning, meaning)}`,
    isOurs: false,
    evidence: [evidenceOf(warning)],
    since: since ?? warning.firstAt,
    blocks: [],
    next: RETRIED,
    remedy: meaning.kind === "topic" ? meaning.goTo : failureClass?.byHand[0],
  };
}

function meaningWords(warning: Warning, meaning: Meant["meaning"]): string {
  switch (meaning.kind) {
    case "class":
      return `${meaning.failureClass.title}.`;
    case "topic":
      return meaning.what;
    case "failure":
      return shortest(meaning.answer);
    case "unknown":
      return shortest(warning.message);
  }
}
