import { readdirSync } from "node:fs";
import { classes } from "../../classes/index.ts";
import { COMMAND_NAMES, commandNamed } from "../commands/index.ts";
import { kebab } from "../help/render-help.ts";
import { SHELLS } from "./scripts.ts";

/** Where the words come from that only a node knows. */
export interface CompletionSources {
  readonly journalIds: () => Promise<readonly string[]>;
  readonly pods: () => readonly string[];
}

const FORMATS = ["table", "json", "yaml"];

/** The words that may stand where the last one is being typed. Never throws: a shell must not print our troubles. */
export async function candidates(words: readonly string[], sources: CompletionSources): Promise<readonly string[]> {
  const current = words.at(-1) ?? "";
  const all = await wordsFor(words.slice(0, -1), current, sources);
  return all.filter((word) => word.startsWith(current));
}

async function wordsFor(
  [name, ...before]: readonly string[],
  current: string,
  sources: CompletionSources,
): Promise<readonly string[]> {
  if (name === undefined) return COMMAND_NAMES;
  const last = before.at(-1);
  if (last === "--only" || last === "--skip") return classes.map(({ id }) => id);
  if (last === "-o" || last === "--output")
    return name === "scan" || name === "heal" ? [...FORMATS, "wide", "name"] : FORMATS;
  if (current.startsWith("-")) {
    const flags = (await commandNamed(name))?.parameters.flags ?? {};
    return Object.keys(flags).map((flag) => `--${kebab(flag)}`);
  }
  switch (name) {
    case "explain":
      return classes.map(({ id }) => id);
    case "history":
    case "undo":
      return await sources.journalIds();
    case "scan":
    case "heal":
      return sources.pods();
    case "quarantine":
      return before.length === 0 ? ["list", "prune"] : await sources.journalIds();
    case "help":
      return COMMAND_NAMES;
    case "completion":
      return SHELLS;
    default:
      return [];
  }
}

/** Pods of this node as kubelet names their log directories: no runtime is asked while somebody types. */
export function podsByLogDirectories(hostRoot: string): readonly string[] {
  try {
    const names = readdirSync(`${hostRoot === "/" ? "" : hostRoot}/var/log/pods`).map((entry) => entry.split("_"));
    return [...new Set(names.flatMap(([namespace, name]) => (namespace && name ? [`${namespace}/${name}`] : [])))];
  } catch {
    return [];
  }
}
