import { classes } from "./index.ts";

/** One alternation is three times as fast as one search for each fragment. Made when the first line is read. */
let anyFragment: RegExp | undefined;

function fragmentsPattern(): RegExp {
  const fragments = new Set(classes.flatMap(({ logFragments }) => logFragments));
  return new RegExp([...fragments].map((fragment) => fragment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"));
}

/** containerd logs every sandbox that it creates and removes, also without an error. */
const CHATTER = /level"?[=:]"?info\b/;
const TROUBLE = /fail|error|not yet finished|panic|reserved|timed out/;
/** Reports that a network was torn down in the end: every earlier error is obsolete. */
const END_OF_TROUBLE = /teardown network for sandbox/;

/** Cheap: may this line concern a sandbox in trouble at all? Readers of large logs call this before they parse a line. */
export function couldConcernSandboxes(line: string): boolean {
  const lower = line.toLowerCase();
  if (CHATTER.test(lower) && !TROUBLE.test(lower) && !END_OF_TROUBLE.test(lower)) return false;
  anyFragment ??= fragmentsPattern();
  return anyFragment.test(lower);
}
