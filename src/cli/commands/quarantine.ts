import { join } from "node:path";
import { isUndoable } from "../../heal/journal/reader.ts";
import {
  choosePrunable,
  filesOf,
  listQuarantine,
  pruneQuarantine,
  type QuarantineEntry,
} from "../../heal/quarantine/inventory.ts";
import { openHealSession } from "../../heal/session.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { describeError } from "../../host/source.ts";
import { printable } from "../../host/text.ts";
import { renderEntry } from "../../report/history.ts";
import {
  bytesOf,
  entryDocument,
  prunedDocument,
  renderKept,
  renderPruned,
  renderQuarantine,
  sizeInWords,
} from "../../report/quarantine.ts";
import { count } from "../../report/words.ts";
import { askYesNo, ExitCode, type Io, print } from "../io.ts";
import {
  durationText,
  noSuchAction,
  noSuchEntry,
  onOff,
  parseDurationMs,
  SettingsError,
  text,
} from "../settings/kinds.ts";
import { readAgentPolicy } from "../settings/policy.ts";
import { type NodeSettings, resolveSettings, stateDirOf } from "../settings/read.ts";
import { type FlagValues, stateFlags } from "../settings/table.ts";
import { sessionOptions } from "../state.ts";
import { anyArguments, defineCommand } from "./index.ts";

const quarantineFlags = {
  olderThan: text("With prune: entries older than this (default: agent.quarantineRetention, 30d)", "DURATION"),
  dryRun: onOff("With prune: show what would be deleted; delete nothing"),
  yes: onOff("With prune: do not ask"),
  ...stateFlags,
};
type QuarantineFlags = FlagValues<typeof quarantineFlags>;

export const quarantineCommand = defineCommand({
  flags: quarantineFlags,
  positional: anyArguments("ID", "With show and logs: this entry; with prune: delete these, whatever their age"),
  aliases: { o: "output", y: "yes" },
  run: async (flags, io, action = "list", ...ids) => {
    const settings = await resolveSettings(flags, io);
    if (action === "list") {
      if (ids.length > 0)
        throw new SettingsError("unghost quarantine list takes no id; unghost quarantine show ID shows one");
      return await list(settings, flags, io);
    }
    if (action === "prune") return await prune(settings, flags, ids, io);
    if (action !== "show" && action !== "logs") {
      throw noSuchAction("quarantine", action, ["list", "show", "logs", "prune"]);
    }
    const [id] = ids;
    if (id === undefined || ids.length > 1) throw new SettingsError(`unghost quarantine ${action} takes one id`);
    return await show(settings, id, action, io);
  },
});

async function list(settings: NodeSettings, flags: QuarantineFlags, io: Io): Promise<ExitCode> {
  const entries = await readEntries(settings, io);
  if (entries === undefined) return ExitCode.unknown;
  const retentionMs = await retentionOf(flags, io);
  const head = { apiVersion: "unghost.dev/v1", kind: "Quarantine", retention: durationText(retentionMs) };
  const kept = retentionMs === 0 ? "kept forever" : `kept for ${durationText(retentionMs)}`;
  const total = `${sizeInWords(bytesOf(entries))} in quarantine, ${kept} (agent.quarantineRetention).\n`;
  const undo = entries.some(({ record }) => record !== undefined && isUndoable(record))
    ? "Put one back: unghost undo ID\n"
    : "";
  const table = () => renderQuarantine(entries, { ...io, now: new Date() }) + (entries.length > 0 ? total + undo : "");
  await print(settings, { ...head, entries: entries.map(entryDocument) }, table, io);
  return ExitCode.ok;
}

/** One entry whole, with its files; `logs` prints the saved logs alone. */
async function show(settings: NodeSettings, id: string, action: "show" | "logs", io: Io): Promise<ExitCode> {
  const entries = await readEntries(settings, io);
  if (entries === undefined) return ExitCode.unknown;
  const entry = entryNamed(entries, id);
  const quarantine = join(stateDirOf(settings), "quarantine");
  const files = filesOf(join(quarantine, entry.id));
  if (action === "logs") {
    if (entry.record?.action.kind !== "save-logs") {
      throw new SettingsError(
        `${id} has no saved logs; CONTENT is "logs" in unghost quarantine list for those that do`,
      );
    }
    for (const file of files) io.stdout(`==> ${printable(file.path)}\n${textOf(file.path)}`);
    return ExitCode.ok;
  }
  const record = entry.record === undefined ? "" : renderEntry(entry.record, quarantine);
  const document = { apiVersion: "unghost.dev/v1", kind: "QuarantineEntry", ...entryDocument(entry), contents: files };
  const lines = files.map(({ path, bytes }) => `File:        ${printable(path)} (${sizeInWords(bytes)})\n`);
  await print(settings, document, () => record + lines.join(""), io);
  return ExitCode.ok;
}

function entryNamed(entries: readonly QuarantineEntry[], id: string): QuarantineEntry {
  const entry = entries.find((one) => one.id === id);
  if (entry !== undefined) return entry;
  throw noSuchEntry(id, "quarantine", "quarantine list");
}

/** What a terminal cannot show is escaped; its last part if it is long. */
function textOf(path: string): string {
  const file = readRegularFile(path, MAX_LOG_BYTES);
  if (file.kind !== "content") return `${file.kind === "gone" ? "is gone" : file.reason}\n`;
  return file.text
    .split("\n")
    .map((line) => printable(line))
    .join("\n");
}

const MAX_LOG_BYTES = 64 * 1024 * 1024;

async function prune(
  settings: NodeSettings,
  flags: QuarantineFlags,
  ids: readonly string[],
  io: Io,
): Promise<ExitCode> {
  if (ids.length > 0 && flags.olderThan !== undefined) {
    throw new SettingsError("name ids or --older-than, not both");
  }
  const target = ids.length > 0 ? { ids: new Set(ids) } : { olderThan: await oldestKept(flags, io) };
  const entries = await readEntries(settings, io);
  if (entries === undefined) return ExitCode.unknown;
  for (const id of ids) entryNamed(entries, id);
  const chosen = choosePrunable(entries, target);
  if (settings.output === "table") {
    if (chosen.prune.length > 0) io.stdout(renderQuarantine(chosen.prune, { ...io, now: new Date() }));
    io.stdout(renderKept(chosen.kept));
  }
  const isDryRun = flags.dryRun === true;
  if (chosen.prune.length === 0 || isDryRun) {
    const document = prunedDocument({ pruned: chosen.prune, kept: chosen.kept, failed: [] }, isDryRun);
    const words = chosen.prune.length === 0 ? "Nothing to prune.\n" : "Dry run: nothing was deleted.\n";
    await print(settings, document, () => words, io);
    return ExitCode.ok;
  }
  const size = sizeInWords(bytesOf(chosen.prune));
  if (!(await mayDelete(`Delete ${count(chosen.prune.length, "entry", "entries")} (${size}) for good?`, flags, io))) {
    return ExitCode.refused;
  }
  return await deleteEntries(settings, new Set(chosen.prune.map(({ id }) => id)), io);
}

async function deleteEntries(settings: NodeSettings, ids: ReadonlySet<string>, io: Io): Promise<ExitCode> {
  const session = await openHealSession(sessionOptions(settings));
  if (!session.ok) {
    io.stderr(`Nothing was deleted: ${session.refusal.message} ${session.refusal.next}\n`);
    return ExitCode.refused;
  }
  try {
    const pruned = await pruneQuarantine(session.value, { ids });
    await print(settings, prunedDocument(pruned, false), () => renderPruned(pruned), io);
    return pruned.failed.length + pruned.kept.length > 0 ? ExitCode.findings : ExitCode.ok;
  } finally {
    await session.value.close();
  }
}

async function mayDelete(question: string, { yes }: QuarantineFlags, io: Io): Promise<boolean> {
  if (yes === true) return true;
  if (!io.stdinIsTerminal || !io.stdoutIsTerminal) {
    io.stderr("Nothing was deleted: there is no terminal to confirm on. Run it with --yes, or --dry-run.\n");
    return false;
  }
  if ((await askYesNo(question, io)) === "yes") return true;
  io.stderr("Nothing was deleted.\n");
  return false;
}

async function readEntries(settings: NodeSettings, io: Io): Promise<readonly QuarantineEntry[] | undefined> {
  const root = stateDirOf(settings);
  const found = await findStateDir(root, process.getuid?.() ?? 0);
  if (!found.ok) {
    io.stderr(`${found.refusal.message}\n${found.refusal.next}\n`);
    return undefined;
  }
  try {
    return found.value === undefined ? [] : await listQuarantine(found.value);
  } catch (thrown) {
    io.stderr(`The quarantine in ${root} cannot be read: ${describeError(thrown)}. Run it as root.\n`);
    return undefined;
  }
}

async function oldestKept(flags: QuarantineFlags, io: Io): Promise<Date> {
  const { olderThan } = flags;
  const ms = olderThan === undefined ? await retentionOf(flags, io) : parseDurationMs(olderThan);
  if (ms === undefined) throw new SettingsError(`--older-than: "${olderThan}" is not a duration like 12h or 30d`);
  if (olderThan === undefined && ms === 0) {
    throw new SettingsError("quarantine is kept forever (agent.quarantineRetention: 0s): give --older-than or ids");
  }
  return new Date(Date.now() - ms);
}

async function retentionOf(flags: QuarantineFlags, io: Io): Promise<number> {
  const read = await readAgentPolicy({ config: flags.config }, io.env);
  if (!read.ok) throw new SettingsError(read.problems.join("; "));
  return read.value.policy.quarantineRetentionMs;
}
