import type { Sandbox } from "../snapshot/types.ts";
import type { Candidate } from "./candidates.ts";
import { wasNeverCreated, wasRecovered } from "./ending.ts";
import type { NodeView } from "./view.ts";

/** Those whose creation failed and could not be undone, in this life of the runtime. */
export function halfMadeOf(candidates: readonly Candidate[], view: NodeView): readonly Candidate[] {
  return candidates.filter(({ sandbox, about }) => wasNeverCreated(sandbox) && !wasRecovered(about, view));
}

/** Where the whole node's network is at fault, its half-made sandboxes are a consequence and not a finding. */
export function heldUpInWords({ pod, id }: Sandbox): string {
  return `pod ${pod.namespace}/${pod.name}: its half-made sandbox ${id} cannot be removed before this is repaired`;
}
