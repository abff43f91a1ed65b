import { classById } from "../classes/index.ts";
import type { Finding } from "../evidence/finding.ts";
import { type ContainerdBehaviour, containerdBehaviour, crioBehaviour } from "../evidence/versions.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

/** Which upgrade prevents which class here: for the runtime by its version, for others by the findings. */
export function adviceFor({ runtime }: Snapshot, findings: readonly Finding[]): readonly string[] {
  const seen = new Set(findings.map((finding) => finding.class));
  const ofClasses = [...seen].flatMap((id) => classById(id)?.prevention?.(runtime) ?? []);
  return [...aboutRuntime(runtime, seen.size > 0), ...ofClasses];
}

function aboutRuntime({ name, version }: Snapshot["runtime"], hasFindings: boolean): readonly string[] {
  if (name.startsWith("containerd")) {
    const behaviour = containerdBehaviour(version);
    return behaviour === undefined ? [] : aboutContainerd(version, behaviour, hasFindings);
  }
  const isCrio = /^cri-?o/i.test(name);
  if (!isCrio || crioBehaviour(version)?.delErrorBlocks !== true) return [];
  return [
    `CRI-O ${version}: a failing CNI DEL blocks the removal of a sandbox forever. From 1.32.8, 1.33.4 and 1.34.0 on the second stop passes.`,
  ];
}

function aboutContainerd(version: string, behaviour: ContainerdBehaviour, hasFindings: boolean): readonly string[] {
  const advice: string[] = [];
  if (behaviour.stop === "del-error-blocks") {
    advice.push(
      `containerd ${version}: a failing CNI DEL blocks the removal of a sandbox forever, even when its network was never set up. From 1.6.37, 1.7.31 and 2.0.8 on it does so only when the network had been set up.`,
    );
  }
  if (behaviour.stop === "del-skipped-without-result" && hasFindings) {
    advice.push(
      `containerd ${version}: a sandbox whose network set-up did not finish is removed without CNI DEL, which leaks addresses. Fixed in 1.7.31, 2.0.8, 2.1.7 and 2.2.2.`,
    );
  }
  if (behaviour.fatalWithoutMetadata) {
    advice.push(
      `containerd ${version}: a crash in the wrong moment keeps it from starting again ("failed to get metadata for stored sandbox"). Fixed in 2.0.6, 2.1.4 and 2.2.0.`,
    );
  }
  return advice;
}
