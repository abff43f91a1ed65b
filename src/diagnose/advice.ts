import type { Finding } from "../classes/finding.ts";
import { type ContainerdBehaviour, containerdBehaviour } from "../classes/versions/containerd.ts";
import { crioBehaviour } from "../classes/versions/crio.ts";
import { KUBELET } from "../classes/versions/kubelet.ts";
import { MULTUS } from "../classes/versions/multus.ts";
import type { Snapshot } from "../snapshot/types.ts";

/** Which upgrade would end which class here: for the runtime by its version, for others by what was found. */
export function adviceFor({ runtime }: Snapshot, findings: readonly Finding[]): readonly string[] {
  const seen = new Set(findings.map((finding) => finding.class));
  const aboutOthers = ABOUT_OTHERS.flatMap(([id, advice]) => (seen.has(id) ? [advice] : []));
  return [...aboutRuntime(runtime, seen), ...aboutOthers];
}

function aboutRuntime({ name, version }: Snapshot["runtime"], seen: ReadonlySet<string>): readonly string[] {
  if (name.startsWith("containerd")) {
    const behaviour = containerdBehaviour(version);
    return behaviour === undefined ? [] : aboutContainerd(version, behaviour, seen);
  }
  const isCrio = /^cri-?o/i.test(name);
  if (!isCrio || crioBehaviour(version)?.delErrorBlocks !== true) return [];
  return [
    `CRI-O ${version}: a failing CNI DEL blocks the removal of a sandbox for ever. From 1.32.8, 1.33.4 and 1.34.0 on the second stop passes.`,
  ];
}

function aboutContainerd(
  version: string,
  behaviour: ContainerdBehaviour,
  seen: ReadonlySet<string>,
): readonly string[] {
  const advice: string[] = [];
  if (behaviour.stop === "del-error-blocks") {
    advice.push(
      `containerd ${version}: a failing CNI DEL blocks the removal of a sandbox for ever, even when its network was never set up. From 1.6.37, 1.7.31 and 2.0.8 on it does so only when the network had been set up.`,
    );
  }
  if (behaviour.stop === "del-skipped-without-result" && seen.size > 0) {
    advice.push(
      `containerd ${version}: a sandbox whose network set-up did not finish is removed without CNI DEL, which leaks addresses. Fixed in 1.7.31, 2.0.8, 2.1.7 and 2.2.2.`,
    );
  }
  if (behaviour.corruptResultBlocks && seen.has("libcni-result-cache-corrupt")) {
    advice.push(
      `containerd ${version}: an empty or half-written CNI result file blocks the removal of its sandbox. containerd 2.0 and later tolerate it.`,
    );
  }
  if (behaviour.fatalWithoutMetadata) {
    advice.push(
      `containerd ${version}: a crash in the wrong moment keeps it from starting again ("failed to get metadata for stored sandbox"). Fixed in 2.0.6, 2.1.4 and 2.2.0.`,
    );
  }
  if (behaviour.leaksRecords && seen.has("record-leak-after-late-failure")) {
    advice.push(
      `containerd ${version}: a sandbox that fails late leaves its record behind. Fixed in 2.2.6 and 2.3.3; do not restart containerd before the duplicates are gone.`,
    );
  }
  return advice;
}

const ABOUT_OTHERS: readonly (readonly [string, string])[] = [
  [
    "clock-step-sandbox-attempt-reuse",
    `kubelet: releases before ${KUBELET.ordersSandboxesByAttemptFrom} order sandboxes by creation time, so a clock step makes them ask for an attempt that is taken. From ${KUBELET.ordersSandboxesByAttemptFrom} on they go by the attempt.`,
  ],
  [
    "multus-cache-corrupt",
    `multus: releases up to ${MULTUS.corruptCacheFailsUpTo} fail every DEL on a cache that does not parse; later ones succeed without calling the delegates, whose addresses are then to be swept.`,
  ],
  [
    "multus-cache-consumed-rebuilt-config",
    "multus: it throws its cache away after the first DEL even when that failed, unless retryDeleteOnError is set in its configuration.",
  ],
  [
    "multus-lossy-conflist",
    `multus: ${MULTUS.lossyConflist.from} to ${MULTUS.lossyConflist.to} strip a delegate's own fields from file-based configurations on DEL. Use an older or a newer release, or spell the delegates out in multus' own configuration.`,
  ],
  [
    "multus-daemon-down-or-wedged",
    `multus: from ${MULTUS.shimSwallowsDelErrorsFrom} on the thick plugin's shim answers DEL with success even while its daemon is down, so addresses leak instead of removals failing.`,
  ],
];
