import { expect, test } from "vitest";
import { type Decision, decideRung, type LadderCase, type Rung } from "../../src/plan/ladder.ts";

/** Dead for long, its pod exists, its containers exist, a kubelet runs, and there is no obstacle. */
const DEAD: LadderCase = {
  provenDead: true,
  optedOut: false,
  retained: false,
  obstacle: false,
  kubeletAlive: true,
  kubeletFollows: false,
  outlastedMinAge: true,
  pod: "known",
  whyUnasked: "nothing answers",
  controlPlane: false,
  neverCreated: false,
  holdsBlockedName: false,
  attemptReused: false,
  clockDoubt: undefined,
  hasContainers: true,
  diedWithNode: true,
  allDead: false,
};

type Code = Decision["reason"]["code"];

interface Row {
  readonly when: string;
  readonly facts: Partial<LadderCase>;
  readonly rung: Rung;
  readonly code: Code;
}

const DOUBT = { code: "clock-in-doubt", text: "the clock is wrong" } as const;
const UNASKED = { pod: "unasked", kubeletAlive: false } as const;

const SENTENCES: Readonly<Record<Code, string>> = {
  "opted-out": "it is opted out by unghost.dev/ignore",
  "not-proven-dead": "it is not proven dead",
  "control-plane-unproven":
    "a control-plane pod is touched only when Kubernetes or kubelet can be asked about it: nothing answers",
  "clock-in-doubt": DOUBT.text,
  "kept-on-purpose": "Kubernetes keeps it on purpose",
  "kubelet-recovering": "kubelet is alive and may be recovering it right now",
  "kubelet-follows": "it needs no repair: kubelet, which starts next, removes it",
  "all-dead-requested": "--all-dead asks for everything proven dead",
  "kept-with-network-held": "Kubernetes keeps it on purpose, but its network cannot be released",
  "kubelet-finishes": "kubelet is alive and finishes once the obstacle is gone",
  "network-releasable": "its network can be released; its record and logs may still be wanted",
  "pod-not-on-node": "its pod is gone from this node",
  "never-created": "it was never completely created",
  "holds-blocked-name": "an observed error names it as the holder of a blocked name",
  "attempt-reused": "after a clock step kubelet asks for its attempt number again",
  "no-container": "it holds no container",
  "died-with-node": "it died with the node; no kubelet runs, and nothing answers",
};

const ROWS: readonly Row[] = [
  // Rung 0: keep it.
  { when: "it is not proven dead", facts: { provenDead: false }, rung: 0, code: "not-proven-dead" },
  { when: "it is opted out", facts: { optedOut: true, obstacle: true }, rung: 0, code: "opted-out" },
  { when: "kubelet keeps it on purpose", facts: { retained: true }, rung: 0, code: "kept-on-purpose" },
  {
    when: "kubelet keeps it on purpose, whatever the state of the pod",
    facts: { retained: true, pod: "gone" },
    rung: 0,
    code: "kept-on-purpose",
  },
  {
    when: "a running kubelet may be recovering it",
    facts: { outlastedMinAge: false },
    rung: 0,
    code: "kubelet-recovering",
  },
  {
    when: "it belongs to the control plane and its pod is unknown",
    facts: { controlPlane: true, ...UNASKED },
    rung: 0,
    code: "control-plane-unproven",
  },
  {
    when: "a clock step is suspected and the clock is in doubt",
    facts: { attemptReused: true, clockDoubt: DOUBT },
    rung: 0,
    code: "clock-in-doubt",
  },
  {
    when: "the clock is in doubt and it would be kept",
    facts: { attemptReused: true, clockDoubt: DOUBT, retained: true, holdsBlockedName: true },
    rung: 0,
    code: "clock-in-doubt",
  },
  // Rung 1: remove the obstacle, let kubelet finish.
  { when: "there is only an obstacle", facts: { obstacle: true }, rung: 1, code: "kubelet-finishes" },
  {
    when: "an obstacle blocks a running kubelet's recovery",
    facts: { obstacle: true, outlastedMinAge: false },
    rung: 1,
    code: "kubelet-finishes",
  },
  // Rung 2: stop, keep record and logs.
  { when: "it is older than kubelet's recovery time", facts: {}, rung: 2, code: "network-releasable" },
  {
    when: "there is an obstacle and no kubelet",
    facts: { obstacle: true, kubeletAlive: false },
    rung: 2,
    code: "network-releasable",
  },
  {
    when: "it is kept on purpose and cannot be stopped",
    facts: { retained: true, obstacle: true },
    rung: 2,
    code: "kept-with-network-held",
  },
  {
    when: "its pod is unknown and it did not die with the node",
    facts: { ...UNASKED, diedWithNode: false },
    rung: 2,
    code: "network-releasable",
  },
  { when: "the pods are unknown and a kubelet runs", facts: { pod: "unasked" }, rung: 2, code: "network-releasable" },
  {
    when: "it belongs to the control plane and its pod is known",
    facts: { controlPlane: true },
    rung: 2,
    code: "network-releasable",
  },
  {
    when: "the clock is in doubt and no attempt is reused",
    facts: { clockDoubt: DOUBT },
    rung: 2,
    code: "network-releasable",
  },
  {
    when: "it is recent and no kubelet runs",
    facts: { kubeletAlive: false, outlastedMinAge: false },
    rung: 2,
    code: "network-releasable",
  },
  {
    when: "it died with the node, whose kubelet is gone, and its pod is known",
    facts: { kubeletAlive: false },
    rung: 2,
    code: "network-releasable",
  },
  // Rung 3: remove, which releases the name.
  { when: "its pod is gone", facts: { pod: "gone" }, rung: 3, code: "pod-not-on-node" },
  {
    when: "its pod is gone, with an obstacle",
    facts: { pod: "gone", obstacle: true },
    rung: 3,
    code: "pod-not-on-node",
  },
  {
    when: "it belongs to the control plane and its pod is gone",
    facts: { controlPlane: true, pod: "gone" },
    rung: 3,
    code: "pod-not-on-node",
  },
  { when: "it was never completely created", facts: { neverCreated: true }, rung: 3, code: "never-created" },
  { when: "an error names it as holder", facts: { holdsBlockedName: true }, rung: 3, code: "holds-blocked-name" },
  {
    when: "an error names it as holder, though it would be kept",
    facts: { holdsBlockedName: true, retained: true },
    rung: 3,
    code: "holds-blocked-name",
  },
  { when: "a clock step reuses its attempt", facts: { attemptReused: true }, rung: 3, code: "attempt-reused" },
  { when: "it holds no container", facts: { hasContainers: false }, rung: 3, code: "no-container" },
  { when: "it died with the node and its pod is unknown", facts: UNASKED, rung: 3, code: "died-with-node" },
  { when: "--all-dead is set", facts: { allDead: true }, rung: 3, code: "all-dead-requested" },
  {
    when: "--all-dead is set and it is kept",
    facts: { allDead: true, retained: true },
    rung: 3,
    code: "all-dead-requested",
  },
  // Refusals that no option overrides.
  {
    when: "--all-dead is set and it may be alive",
    facts: { allDead: true, provenDead: false },
    rung: 0,
    code: "not-proven-dead",
  },
  {
    when: "--all-dead is set and it is opted out",
    facts: { allDead: true, optedOut: true },
    rung: 0,
    code: "opted-out",
  },
  {
    when: "--all-dead is set and it belongs to an unproven control plane",
    facts: { allDead: true, controlPlane: true, ...UNASKED },
    rung: 0,
    code: "control-plane-unproven",
  },
  ...(["known", "gone", "unasked"] as const).map(
    (pod): Row => ({
      when: `a kubelet follows, nothing prevents the removal, and its pod is ${pod}`,
      facts: { ...UNASKED, pod, kubeletFollows: true },
      rung: 0,
      code: "kubelet-follows",
    }),
  ),
  {
    when: "a kubelet follows, and it holds no container",
    facts: { hasContainers: false, kubeletFollows: true },
    rung: 0,
    code: "kubelet-follows",
  },
  {
    when: "a kubelet follows, and something prevents the removal",
    facts: { ...UNASKED, pod: "gone", kubeletFollows: true, obstacle: true },
    rung: 3,
    code: "pod-not-on-node",
  },
  {
    when: "a kubelet follows that would be refused the name",
    facts: { ...UNASKED, pod: "known", kubeletFollows: true, attemptReused: true },
    rung: 3,
    code: "attempt-reused",
  },
  {
    when: "it was never created and a running kubelet has just started",
    facts: { neverCreated: true, outlastedMinAge: false },
    rung: 0,
    code: "kubelet-recovering",
  },
];

test.each(ROWS)("rung $rung when $when", ({ facts, rung, code }) => {
  const decision = decideRung({ ...DEAD, ...facts });

  expect(decision).toEqual({ rung, reason: { code, text: SENTENCES[code] } });
});
