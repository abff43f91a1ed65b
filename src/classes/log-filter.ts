import { classes } from "./index.ts";

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
