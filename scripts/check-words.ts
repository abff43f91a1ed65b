/**
 * Plain words: people search code, logs and documents for the words that Kubernetes and the runtimes use. This fails
 * where one of the words below is used instead, in text or inside a name (lastLook, NOBODY_WAITS).
 */
import { globSync, readFileSync } from "node:fs";

/** What is checked. Generated files repeat their sources. */
const CHECKED: readonly string[] = [
  "{bench,deploy,docs,lab,scripts,src,test}/**/*",
  "site/*.{ts,js,njk,css}",
  "Makefile",
  "{CHANGELOG,CONTRIBUTING,README,SECURITY}.md",
];

const SKIPPED = /\/gen\/|^scripts\/check-words\.ts$|\.(?:png|svg|gz|db|tgz)$/;

/** Word or phrase, and what to write. A space stands for any white space and comment marks. */
const FORBIDDEN: readonly (readonly [RegExp, string])[] = [
  [/look(?:s|ed|ing)?/, "scan, check, read, search, inspect; appear"],
  [/told|tells|telling/, "reported, logged; distinguishes"],
  [/said|sayings?/, "reported, configured, logged"],
  [/for ever/, "forever, until stopped"],
  [/nobody/, "no pod, no process, nothing, no one"],
  [/whoever/, "the name of who it is: the caller, the operator"],
  [/anew/, "again"],
  [/begun/, "started"],
  [/dear(?:er|est|ly)?/, "expensive"],
  [/a person|persons?/, "manual, manually, an operator"],
  [/no longer so/, "recovered"],
  [/got on/, "the sandbox became Ready"],
  [/once more/, "again"],
  [/so many/, "N, this many"],
  [/in vain/, "without success"],
  [/houses?/, "architecture, project"],
  [/sick/, "unhealthy"],
  [/greets?|faces|departures?/, "fetch, exporters, removals"],
  [/may not be looked into/, "permission denied"],
  [/lest|hence|thereby|whence/, "so that, therefore; or two sentences"],
  [/(?:give|gives|gave|given|giving) up on/, "stop retrying, stopped retrying"],
  [/pity/, "leave it out"],
  [/by (?:itself|themselves)/, "automatically, on its own, detected; or leave it out"],
];

/** For text that users read. */
const PUBLISHED = /^(?:src|docs|deploy)\/|^(?:README|CHANGELOG|SECURITY|CONTRIBUTING)\.md$/;
const FORBIDDEN_IN_PUBLISHED: readonly (readonly [RegExp, string])[] = [
  [/says?|saying/, "reports, shows, logs, returns, describes"],
  [/tell/, "determine, distinguish, report"],
  [/merely/, "only"],
  [/upon/, "on"],
  [/mend(?:s|ed|ing)?/, "repair, fix"],
  [/hears?|heard/, "receives, is notified"],
  [/becomes of/, "the outcome; whether it succeeds"],
];

/** Quoted messages of other programs. */
const QUOTED: readonly string[] = [
  // encoding/json of Go
  "looking for beginning of value",
];

interface Phrase {
  readonly pattern: RegExp;
  readonly instead: string;
}

function phrase([words, instead]: readonly [RegExp, string]): Phrase {
  return { pattern: new RegExp(`\\b(?:${words.source.replaceAll(" ", "(?:\\s|[*/#])+")})\\b`, "gi"), instead };
}

const EVERYWHERE = FORBIDDEN.map(phrase);
const IN_PUBLISHED = [...EVERYWHERE, ...FORBIDDEN_IN_PUBLISHED.map(phrase)];

/** Splits lastLook and LAST_LOOK into words, on the same line. */
function asWords(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll("_", " ");
}

function findForbidden(file: string): string[] {
  const lines = readFileSync(file, "utf8").split("\n");
  const text = lines.map((line) => (QUOTED.some((quoted) => line.includes(quoted)) ? "" : asWords(line))).join("\n");
  return (PUBLISHED.test(file) ? IN_PUBLISHED : EVERYWHERE).flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ 0: words, index }) => {
      const line = text.slice(0, index).split("\n").length;
      return `${file}:${line}: "${words.replace(/\s+/g, " ")}": write ${instead}: ${lines[line - 1]?.trim()}`;
    }),
  );
}

const checked = process.argv.length > 2 ? process.argv.slice(2) : CHECKED;
const files = globSync([...checked], { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`.replace(`${process.cwd()}/`, ""))
  .filter((file) => !SKIPPED.test(file));
const found = files.sort().flatMap(findForbidden);
for (const line of found) console.error(line);
process.exitCode = found.length === 0 ? 0 : 1;
