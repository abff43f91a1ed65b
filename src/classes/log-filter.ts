import { classes } from "./index.ts";

/** One alternation is three times as fast as one search for each fragment. Made when the first line is read. */
let anyFragment: RegExp | undefined;

function fragmentsPattern(): RegExp {
  const fragments = new Set(classes.flatMap(({ logFragments }) => logFragments));
  return new RegExp([...fragments].map((fragment) => fragment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"));
}

/** containerd tells of every sandbox that it makes and removes in good health. */
const CHATTER = /level"?[=:]"?info\b/;
const TROUBLE = /fail|error|not yet finished|panic|reserved|timed out/;
/** Says that a network could be taken down in the end: every complaint before it is history. */
const END_OF_TROUBLE = /teardown network for sandbox/;

/** Cheap: may this line concern a sandbox in trouble at all? Readers of large logs ask this before they look closer. */
export function couldConcernSandboxes(line: string): boolean {
  const lower = line.toLowerCase();
  if (CHATTER.test(lower) && !TROUBLE.test(lower) && !END_OF_TROUBLE.test(lower)) return false;
  anyFragment ??= fragmentsPattern();
  return anyFragment.test(lower);
}
