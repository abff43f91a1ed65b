import * as catalogue from "./catalogue.ts";
import { type Affected, CATEGORIES, type Category, type ClassDefinition, type FailureClass } from "./failure-class.ts";

/** Every failure class, in the order of its codes. */
export const classes: readonly FailureClass[] = Object.entries(CATEGORIES).flatMap(([letter, category]) =>
  Object.values(catalogue)
    .filter(({ code }) => code.startsWith(letter))
    .toSorted((one, other) => numberOf(one) - numberOf(other))
    .map((definition) => classOf(definition, category)),
);

function numberOf({ code }: ClassDefinition): number {
  return Number(code.slice(1));
}

function classOf(definition: ClassDefinition, category: Category): FailureClass {
  const links = definition.links.map((link) => `https://github.com/${link.replace("#", "/issues/")}`);
  const { versions: affected, ...rest } = definition;
  const versions = inWords(affected);
  const inSnapshot = shownBy(definition);
  return { signatures: () => [], logFragments: [], ...rest, category, affected, versions, inSnapshot, links };
}

function inWords({ since, until, ends, note }: Affected): string {
  const last = until === "open" ? "the newest releases still have it" : `until ${until}`;
  return [`Since ${since}; ${last}.`, ends, ...(note === undefined ? [] : [note])].join(" ");
}

function shownBy({ inSnapshot, detect, detectAmong, adopts }: ClassDefinition): FailureClass["inSnapshot"] {
  if (typeof inSnapshot === "object") return inSnapshot;
  return (detect ?? detectAmong ?? adopts) === undefined ? { why: inSnapshot } : { how: inSnapshot };
}

const byId: ReadonlyMap<string, FailureClass> = new Map(classes.map((one) => [one.id, one]));

export function classById(id: string): FailureClass | undefined {
  return byId.get(id);
}

/** By its id, or by its short code in any case: B1, b1. */
export function classNamed(name: string): FailureClass | undefined {
  return classById(name) ?? classes.find(({ code }) => code === name.toUpperCase());
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
