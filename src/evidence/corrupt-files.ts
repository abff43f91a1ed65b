import type { SandboxId } from "../snapshot/ids.ts";
import type { ResultFile, ScratchFile } from "../snapshot/types/cni.ts";
import type { Runtime } from "../snapshot/types/runtime.ts";
import type { Step } from "./step.ts";
import { containerdBehaviour } from "./versions/containerd.ts";
import { crioBehaviour } from "./versions/crio.ts";
import type { NodeView } from "./view.ts";

/** A cache file that cannot be parsed, and may be moved away because of it. */
type BrokenFile = ScratchFile & { readonly health: "empty" | "corrupt" };

export function isBroken<T extends ScratchFile>(file: T): file is T & BrokenFile {
  return file.health === "empty" || file.health === "corrupt";
}

/** The broken among a sandbox's result files that DEL stumbles over: not every runtime does. */
export function blockingResults(results: readonly ResultFile[], { snapshot }: NodeView): (ResultFile & BrokenFile)[] {
  const { runtime, cni } = snapshot;
  const runtimeStumbles = corruptResultBlocks(runtime);
  const multusDir = cni.multus.status === "read" ? cni.multus.value.dir : undefined;
  // Under multus a single-plugin network reads its own cache, with a libcni that stumbles whatever the runtime is.
  const isRead = ({ path }: ResultFile) =>
    runtimeStumbles || (multusDir !== undefined && path.startsWith(`${multusDir}/`));
  return results.filter((file) => isRead(file)).filter(isBroken);
}

export function brokenInWords(file: BrokenFile): string {
  return file.health === "empty" ? `${file.path} is empty` : `${file.path} (${file.size} bytes) is not valid JSON`;
}

export function quarantineStep(file: BrokenFile): Step {
  return { kind: "quarantine-file", path: file.path, health: file.health };
}

/** Whether the runtime's libcni fails DEL on a cached result that it cannot parse; no for an unknown runtime. */
function corruptResultBlocks({ name, version }: Pick<Runtime, "name" | "version">): boolean {
  if (name.startsWith("containerd")) return containerdBehaviour(version)?.corruptResultBlocks === true;
  if (name.startsWith("cri-o")) return crioBehaviour(version)?.corruptResultBlocks === true;
  return false;
}

/** The DELs that are still owed to the plugins of a sandbox that is gone, before the records of them are moved away. */
export function replaysOf(sandboxId: SandboxId, results: readonly ResultFile[]): readonly Step[] {
  const replayable = results.filter(({ health, hasConfig }) => health === "ok" && hasConfig === true);
  return replayable.map(({ path }) => ({ kind: "replay-del", sandboxId, path }));
}
