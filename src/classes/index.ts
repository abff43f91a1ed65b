import { boltCorruption } from "./bolt-corruption.ts";
import { cniLockWedge } from "./cni-lock-wedge.ts";
import { crashLoopDrivenByGhost } from "./crash-loop-driven-by-ghost.ts";
import { creationBlocked } from "./creation-blocked.ts";
import { deadAfterCrash } from "./dead-after-crash.ts";
import { recoverDuplicateContainerName, recoverDuplicateSandboxName } from "./duplicate-names.ts";
import type { FailureClass } from "./failure-class.ts";
import { leaks } from "./leaks.ts";
import { leftoverContainer } from "./leftover-container.ts";
import { notFailures } from "./not-failures.ts";
import { otherRuntimes } from "./other-runtimes.ts";
import { podGone } from "./pod-gone.ts";
import { recoverMissingMetadata } from "./recover-missing-metadata.ts";
import { removalFails } from "./removal-fails.ts";
import { volumeAttachmentStuck } from "./volume-attachment-stuck.ts";

/** Every failure class, in the order of its codes. Long categories have lists of their own. */
export const classes: readonly FailureClass[] = [
  ...creationBlocked,
  ...removalFails,
  ...leaks,
  recoverDuplicateSandboxName,
  recoverDuplicateContainerName,
  recoverMissingMetadata,
  boltCorruption,
  cniLockWedge,
  deadAfterCrash,
  leftoverContainer,
  podGone,
  crashLoopDrivenByGhost,
  volumeAttachmentStuck,
  ...otherRuntimes,
  ...notFailures,
];

const byId: ReadonlyMap<string, FailureClass> = new Map(classes.map((one) => [one.id, one]));

export function classById(id: string): FailureClass | undefined {
  return byId.get(id);
}

export function classThatAdopts(orphans: FailureClass["adopts"]): FailureClass {
  const found = classes.find(({ adopts }) => adopts === orphans);
  if (found === undefined) throw new Error(`no class adopts ${orphans}`);
  return found;
}

/** One alternation is three times as fast as one search for each fragment. Built with the first line. */
let anyFragment: RegExp | undefined;

function fragmentsPattern(): RegExp {
  const fragments = new Set(classes.flatMap(({ logFragments }) => logFragments));
  return new RegExp([...fragments].map((fragment) => fragment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"));
}

/** containerd logs every sandbox that it creates and removes, also without an error. */
const CHATTER = /level"?[=:]"?info\b/;
const TROUBLE = /fail|error|not yet finished|panic|reserved|timed out/;
/** Reports that a network was torn down: every earlier error is obsolete. */
const NETWORK_RELEASED = /teardown network for sandbox/;

/**
 * A cheap check whether a line may concern a failing sandbox. Readers of large logs call it before they parse a line.
 */
export function couldConcernSandboxes(line: string): boolean {
  const lower = line.toLowerCase();
  if (CHATTER.test(lower) && !TROUBLE.test(lower) && !NETWORK_RELEASED.test(lower)) return false;
  anyFragment ??= fragmentsPattern();
  return anyFragment.test(lower);
}
