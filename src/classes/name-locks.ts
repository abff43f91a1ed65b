import type { SandboxId } from "../snapshot/ids.ts";
import { valueOr } from "../snapshot/source.ts";
import type { NodeView } from "./view.ts";

const LOCK =
  /failed to reserve sandbox name \\*"([^"\\]{1,600})\\*": name \\*"[^"\\]{1,600}\\*" is reserved for \\*"([0-9a-f]{64})/;

/** Holder id -> the name it blocks, as the runtime's and kubelet's logs say. */
export function namesHeldInLogs(view: NodeView): ReadonlyMap<SandboxId, string> {
  const held = new Map<SandboxId, string>();
  for (const { text } of valueOr(view.snapshot.logs, undefined)?.lines ?? []) {
    const [, name, id] = LOCK.exec(text) ?? [];
    if (name !== undefined && id !== undefined) held.set(id as SandboxId, name);
  }
  return held;
}
