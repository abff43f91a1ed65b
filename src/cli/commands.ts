import { buildCommand, buildRouteMap, type CommandContext } from "@stricli/core";
import type { BootFlags } from "./boot.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { HealFlags } from "./heal.ts";
import { type Io, wantsColour } from "./io.ts";
import { nodeFlagAliases, nodeFlags } from "./node-flags.ts";
import { type NodeFlags, resolveSettings } from "./settings.ts";
import { SettingsError } from "./settings-error.ts";

export interface Context extends CommandContext {
  readonly io: Io;
  /** What the command decided; stricli's own codes never overlap with ours. */
  finish(code: ExitCode): void;
}

const scan = buildCommand<NodeFlags, [], Context>({
  docs: { brief: "Look for ghosts; changes nothing. Exit 0 healthy, 1 findings, 2 could not tell" },
  parameters: { flags: nodeFlags, aliases: nodeFlagAliases },
  func: async function (flags) {
    const { runScan } = await import("./scan.ts");
    this.finish(await runScan(flags, this.io));
  },
});

const heal = buildCommand<HealFlags, [], Context>({
  docs: { brief: "Heal what is proven stuck. Exit 0 nothing left, 1 something left, 2 could not look, 3 refused" },
  parameters: {
    flags: {
      ...nodeFlags,
      dryRun: { kind: "boolean", optional: true, withNegated: false, brief: "Stop at the plan" },
      yes: { kind: "boolean", optional: true, withNegated: false, brief: "Do not ask" },
      allDead: {
        kind: "boolean",
        optional: true,
        withNegated: false,
        brief: "Sweep everything that is proven dead, finished pods included (their logs go to quarantine)",
      },
    },
    aliases: { ...nodeFlagAliases, y: "yes" },
  },
  func: async function (flags) {
    const { runHeal } = await import("./heal.ts");
    this.finish(await runHeal(flags, this.io));
  },
});

function bootSwitch(brief: string) {
  return { kind: "boolean", optional: true, withNegated: false, brief } as const;
}

function bootText(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, brief, placeholder } as const;
}

const boot = buildCommand<BootFlags, [], Context>({
  docs: { brief: "Heal once per boot, before or right after the runtime starts. Exit 0 always, unless --strict" },
  parameters: {
    flags: {
      ...nodeFlags,
      deadline: bootText("Give up after this long (default 60s)", "DURATION"),
      after: bootSwitch("The runtime is starting or up: wait for it and heal through it"),
      record: bootSwitch("Write down which pods have a network now (for the unit's stop)"),
      shutdown: bootSwitch("With --record: the machine is going down in an orderly way"),
      strict: bootSwitch("Exit 1 when something is left, 2 when it could not be done"),
      repair: bootSwitch("Mend the records of a containerd that will not start (needs --yes)"),
      yes: bootSwitch("With --repair: do it"),
      force: bootSwitch("Also when it has run in this boot already"),
      containerdBin: bootText("containerd program to borrow (default: the distribution's own)", "FILE"),
      containerdConfig: bootText("Its configuration", "FILE"),
      containerdRoot: bootText("Its root directory", "DIR"),
    },
    aliases: nodeFlagAliases,
  },
  func: async function (flags) {
    const { runBoot } = await import("./boot.ts");
    this.finish(await runBoot(flags, this.io));
  },
});

interface ExplainFlags {
  readonly journal?: boolean;
  readonly list?: boolean;
  readonly output?: string;
}

const output = {
  kind: "parsed",
  parse: String,
  optional: true,
  brief: "table, json or yaml",
  placeholder: "FORMAT",
} as const;

const explain = buildCommand<ExplainFlags, string[], Context>({
  docs: { brief: "Say what an error line means: class, cause, cure. Needs no node. Exit 0 recognised, 1 not" },
  parameters: {
    flags: {
      journal: { kind: "boolean", optional: true, withNegated: false, brief: "Read this machine's journal" },
      list: { kind: "boolean", optional: true, withNegated: false, brief: "List all failure classes" },
      output,
    },
    positional: {
      kind: "array",
      parameter: { parse: String, brief: "Error lines, files, a class, or - for standard input", placeholder: "TEXT" },
    },
    aliases: { o: "output" },
  },
  func: async function (flags, ...texts) {
    const { runExplain } = await import("./explain.ts");
    const settings = await resolveSettings(flags.output === undefined ? {} : { output: flags.output }, this.io);
    const options = { texts, journal: flags.journal ?? false, list: flags.list ?? false };
    this.finish(await runExplain({ ...options, output: settings.output, colour: wantsColour(this.io) }, this.io));
  },
});

interface HistoryFlags {
  readonly stateDir?: string;
  readonly hostRoot?: string;
  readonly config?: string;
  readonly output?: string;
  readonly limit?: number;
}

const { stateDir, hostRoot, config } = nodeFlags;

const history = buildCommand<HistoryFlags, [], Context>({
  docs: { brief: "Show what unghost did on this node" },
  parameters: {
    flags: {
      stateDir,
      hostRoot,
      config,
      output,
      limit: {
        kind: "parsed",
        parse: positiveNumber,
        optional: true,
        brief: "Only the newest so many",
        placeholder: "N",
      },
    },
    aliases: { o: "output" },
  },
  func: async function ({ limit, ...flags }) {
    const { runHistory } = await import("./history.ts");
    const settings = await resolveSettings(flags, this.io);
    const { stateDirOf } = await import("./state.ts");
    const place = { stateDir: stateDirOf(settings), uid: process.getuid?.() ?? 0, output: settings.output };
    this.finish(await runHistory(limit === undefined ? place : { ...place, limit }, this.io));
  },
});

interface UndoFlags extends Omit<HistoryFlags, "limit"> {
  readonly last?: boolean;
}

const undo = buildCommand<UndoFlags, [string?], Context>({
  docs: { brief: "Put a file back that healing had moved to quarantine. Exit 0 it is back, 1 it is not, 3 refused" },
  parameters: {
    flags: {
      stateDir,
      hostRoot,
      config,
      output,
      last: { kind: "boolean", optional: true, withNegated: false, brief: "The newest that can be undone" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, optional: true, brief: "Journal id, as history shows it", placeholder: "ID" }],
    },
    aliases: { o: "output" },
  },
  func: async function ({ last, ...flags }, id) {
    if ((id === undefined) === (last !== true)) throw new SettingsError("name one journal id, or --last");
    const { runUndo } = await import("./undo.ts");
    const { sessionOptions } = await import("./state.ts");
    const settings = await resolveSettings(flags, this.io);
    const target = id === undefined ? "last" : { id };
    this.finish(await runUndo({ ...sessionOptions(settings), target, output: settings.output }, this.io));
  },
});

export const routes = buildRouteMap<string, Context>({
  routes: { scan, heal, boot, explain, history, undo },
  docs: { brief: "Finds and heals ghost pod sandboxes on Kubernetes nodes" },
});

function positiveNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new Error(`"${text}" is not a whole number from 1 on`);
  return number;
}
