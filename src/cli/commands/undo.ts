import type { Recovery } from "../../heal/quarantine/recover.ts";
import { type MovedFile, previewUndo, type UndoOutcome, undo } from "../../heal/quarantine/undo.ts";
import { openHealSession, type SessionOptions } from "../../heal/session.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { printable } from "../../host/text.ts";
import { formatDocument, type OutputFormat } from "../../report/output.ts";
import { ExitCode, type Io } from "../io.ts";
import { noSuchEntry, onOff, SettingsError } from "../settings/kinds.ts";
import { resolveSettings } from "../settings/read.ts";
import { stateFlags } from "../settings/table.ts";
import { sessionOptions } from "../state.ts";
import { defineCommand, oneArgument } from "./index.ts";

const undoFlags = {
  ...stateFlags,
  last: onOff("The newest that can be undone"),
  dryRun: onOff("Show what would be put back; change nothing"),
};

export const undoCommand = defineCommand({
  flags: undoFlags,
  positional: oneArgument("ID", "Journal id, as quarantine lists it"),
  aliases: { o: "output" },
  run: async ({ last, dryRun, ...flags }, io, id) => {
    if ((id === undefined) === (last !== true))
      throw new SettingsError("name one id (unghost quarantine lists what can be put back), or --last");
    const settings = await resolveSettings(flags, io);
    const target = id === undefined ? "last" : { id };
    return await runUndo({ ...sessionOptions(settings), target, dryRun, output: settings.output }, io);
  },
});

export interface UndoOptions extends SessionOptions {
  readonly target: { readonly id: string } | "last";
  readonly output: OutputFormat;
  readonly dryRun?: boolean;
}

const EXIT_OF_OUTCOME: Readonly<Record<UndoOutcome["outcome"], ExitCode>> = {
  undone: ExitCode.ok,
  "would-undo": ExitCode.ok,
  "unknown-id": ExitCode.usage,
  "already-undone": ExitCode.ok,
  failed: ExitCode.findings,
  refused: ExitCode.refused,
};

/** Puts a quarantined file back. Exits 0 restored, 1 failed, 3 refused without a change. */
export async function runUndo(options: UndoOptions, io: Pick<Io, "stdout" | "stderr">): Promise<ExitCode> {
  const found = await findStateDir(options.stateDir, options.uid);
  if (found.ok && found.value === undefined) {
    if (options.target !== "last") throw noSuchEntry(options.target.id, "the journal", "history");
    return print({ outcome: "refused", refusal: nothingEver(options.stateDir) }, options, io);
  }
  if (options.dryRun === true && found.ok && found.value !== undefined) {
    const place = { stateDir: found.value, hostRoot: options.hostRoot };
    return await print(await previewUndo(place, options.target), options, io);
  }
  const session = await openHealSession(options);
  if (!session.ok) {
    return print({ outcome: "refused", refusal: session.refusal }, options, io);
  }
  try {
    for (const recovery of session.value.recoveries) io.stderr(`${recoveryLine(recovery)}\n`);
    return await print(await undo(session.value, options.target), options, io);
  } finally {
    await session.value.close();
  }
}

async function print(
  outcome: UndoOutcome,
  { output, target }: UndoOptions,
  io: Pick<Io, "stdout" | "stderr">,
): Promise<ExitCode> {
  if (output !== "table") {
    io.stdout(await formatDocument({ apiVersion: "unghost.dev/v1", kind: "Undo", ...outcome }, output));
  } else if (outcome.outcome === "unknown-id" && target !== "last") {
    throw noSuchEntry(target.id, "the journal", "history");
  } else if ("refusal" in outcome) {
    io.stderr(`${printable(outcome.refusal.message)}\n${printable(outcome.refusal.next)}\n`);
  } else {
    io.stdout(`${printable(outcome.path)} ${RESULT[outcome.outcome]} (${outcome.id})\n`);
    io.stdout(aboutFile(outcome.was, outcome.outcome));
  }
  return EXIT_OF_OUTCOME[outcome.outcome];
}

const RESULT = { undone: "restored", "already-undone": "was restored before", "would-undo": "would be restored" };

/** What it was, and what follows from its return. */
function aboutFile({ class: id, pod, bytes, movedAt }: MovedFile, outcome: keyof typeof RESULT): string {
  const whose = pod === undefined ? "" : ` of ${pod}`;
  const was = `  It was ${bytes} bytes${whose}, moved ${movedAt} for ${id}.\n`;
  if (outcome === "already-undone") return printableLines(was);
  const next = `  While its cause lasts, the next scan finds it again and an agent moves it again: unghost explain ${id}\n`;
  return printableLines(was + next) + (outcome === "would-undo" ? "Dry run: nothing was changed.\n" : "");
}

function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

function recoveryLine({ id, kind, how, detail }: Recovery): string {
  return `An earlier run was interrupted at ${kind} (${id}): ${how}. ${printable(detail)}`;
}

function nothingEver(stateDir: string): { readonly message: string; readonly next: string } {
  return {
    message: `There is nothing to undo: ${stateDir} does not exist.`,
    next: "If another --state-dir was used to heal, name it here too.",
  };
}
