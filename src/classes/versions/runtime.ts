import type { Runtime } from "../../snapshot/types.ts";
import { containerdBehaviour } from "./containerd.ts";
import { crioBehaviour } from "./crio.ts";

/** Whether the runtime's libcni fails DEL on a cached result that it cannot parse; no for a runtime that nobody looked at. */
export function corruptResultBlocks({ name, version }: Pick<Runtime, "name" | "version">): boolean {
  if (name.startsWith("containerd")) return containerdBehaviour(version)?.corruptResultBlocks === true;
  if (name.startsWith("cri-o")) return crioBehaviour(version)?.corruptResultBlocks === true;
  return false;
}
