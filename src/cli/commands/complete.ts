import { readdirSync } from "node:fs";
import { classes } from "../../classes/index.ts";
import { type HistoryRecord, isUndoable, readHistory } from "../../heal/journal/reader.ts";
import { stateDirLayout } from "../../heal/state/state-layout.ts";
import { printable } from "../../host/text.ts";
import { holdsFiles } from "../../report/history.ts";
import { naturalOrder } from "../../report/words.ts";
import { ExitCode, type Io } from "../io.ts";
import { readSettings, stateDirOf } from "../settings/read.ts";
import { kebab } from "../settings/table.ts";
import { SHELLS } from "./completion.ts";
import { COMMAND_NAMES, commandNamed } from "./index.ts";

/** Sources of node-specific words. */
interface CompletionSources {
  readonly journal: () => Promise<readonly HistoryRecord[]>;
  readonly pods: () => readonly string[];
  readonly env: Io["env"];
}

const FORMATS = ["table", "json", "yaml"];

/** The candidates for the last word. Never throws: a shell must not print our errors. */
async function candidates(words: readonly string[], sources: CompletionSources): Promise<readonly string[]> {
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
  if (name === "fleet" && !current.startsWith("-")) {
    return await (await import("./fleet-words.ts")).fleetWords(before, current, sources.env);
  }
  if (["--only", "--skip", "--allow"].includes(last ?? "")) return classes.map(({ id }) => id);
  if (last === "-o" || last === "--output")
    return name === "scan" || name === "heal" ? [...FORMATS, "wide", "name"] : FORMATS;
  if (last === "--distribution") return (await import("../../boot/install/detect.ts")).CHOICES;
  if ((last === "-n" || last === "--namespace") && (name === "scan" || name === "heal"))
    return [...new Set(sources.pods().map((pod) => pod.slice(0, pod.indexOf("/"))))];
  if (current.startsWith("-")) {
    const flags = (await commandNamed(name))?.parameters.flags ?? {};
    const shown = Object.entries(flags).filter(([, flag]) => !("hidden" in flag && flag.hidden));
    return shown.map(([flag]) => `--${kebab(flag)}`);
  }
  switch (name) {
    case "explain":
      return classes.map(({ id }) => id);
    case "history":
      return (await sources.journal()).map(({ id }) => id);
    case "undo":
      return (await sources.journal()).filter(isUndoable).map(({ id }) => id);
    case "scan":
    case "heal":
      return sources.pods();
    case "quarantine":
      if (before.length === 0) return ["list", "prune"];
      return before[0] === "prune" ? (await sources.journal()).filter(holdsFiles).map(({ id }) => id) : [];
    case "help":
      return COMMAND_NAMES;
    case "completion":
      return SHELLS;
    default:
      return [];
  }
}

/** Names that Kubernetes allows, so that a shell gets nothing but plain words. */
const POD_DIRECTORY = /^([a-z0-9][a-z0-9-]*)_([a-z0-9][a-z0-9.-]*)_/;

/** Pods of this node from kubelet's log directories: completion does not call the runtime. */
function podsByLogDirectories(hostRoot: string): readonly string[] {
  try {
    const entries = readdirSync(`${hostRoot === "/" ? "" : hostRoot}/var/log/pods`);
    const pods = entries.flatMap((entry) => {
      const [, namespace, name] = POD_DIRECTORY.exec(entry) ?? [];
      return namespace === undefined || name === undefined ? [] : [`${namespace}/${name}`];
    });
    return [...new Set(pods)].toSorted(naturalOrder);
  } catch {
    return [];
  }
}

/** Answers a shell's completion script: one word per line, nothing on an error. */
export async function runComplete(words: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const settings = await readSettings({}, io);
    const found = await candidates(words, {
      journal: async () => (await readHistory(stateDirLayout(stateDirOf(settings)).journal)).records,
      pods: () => podsByLogDirectories(settings.hostRoot),
      env: io.env,
    });
    io.stdout(found.map((word) => `${printable(word)}\n`).join(""));
  } catch {
    // The prompt must not show an error.
  }
  return ExitCode.ok;
}
