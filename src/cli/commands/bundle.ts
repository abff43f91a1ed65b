import { closeSync, fsyncSync, openSync } from "node:fs";
import { release } from "node:os";
import { resolve } from "node:path";
import { logFiles, nodeConfigs } from "../../bundle/node-files.ts";
import { redactDeep } from "../../bundle/redact.ts";
import { SAVED_SCAN, savedScanDocument } from "../../bundle/saved-scan.ts";
import { type Member, packed } from "../../bundle/tar.ts";
import { observeNode } from "../../diagnose/observe-node.ts";
import { stringify } from "../../heal/journal/entry.ts";
import { readHistory } from "../../heal/journal/reader.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { describeError, errorCode } from "../../host/source.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import { DEFAULT_CAP } from "../../plan/policy.ts";
import { scanNode } from "../../plan/scan.ts";
import { buildReport } from "../../report/build.ts";
import { historyDocument } from "../../report/history.ts";
import { withPlan } from "../../report/plan.ts";
import { failuresOf } from "../earlier-failures.ts";
import { ExitCode, type Io, STDOUT, writeAll } from "../io.ts";
import { settingsToSave } from "../saved-scan.ts";
import { SettingsError } from "../settings/kinds.ts";
import { configPath, type NodeSettings, resolveSettings, stateDirOf } from "../settings/read.ts";
import { agentNodeFlags, type NodeFlags } from "../settings/table.ts";
import { withClassIds } from "../targets.ts";
import { VERSION } from "../version.ts";
import { defineCommand, oneArgument } from "./index.ts";

export const bundleCommand = defineCommand({
  flags: agentNodeFlags,
  positional: oneArgument("FILE", "Where to write it; - is standard output (default: unghost-NODE-TIME.tar.gz here)"),
  run: runBundle,
});

/** Larger entries are left out, so that `scan --from` never refuses what this wrote. */
const MAX_ENTRY_BYTES = { snapshot: 32 * 1024 * 1024, other: 6 * 1024 * 1024 } as const;
/** The newest: a journal keeps months. */
const MAX_HISTORY = 2000;

/** One archive of what a report needs, without secrets. Changes nothing on the node. */
async function runBundle(flags: NodeFlags, io: Io, file?: string): Promise<ExitCode> {
  if (file === "-" && io.stdoutIsTerminal) {
    throw new SettingsError(
      "- writes the archive to standard output: redirect it, as in unghost bundle - > node.tar.gz",
    );
  }
  const settings = await withClassIds(await resolveSettings(flags, io));
  const takenAt = new Date();
  const path = file ?? `unghost-${settings.node.replaceAll(/[^\w.-]/g, "_")}-${stampOf(takenAt)}.tar.gz`;
  // Before the scan: a name that cannot be written is found at once.
  const fd = path === "-" ? STDOUT : newPrivateFile(path);
  const members = await membersOf(settings, configPath(flags, io.env), { env: io.env, takenAt });
  const archive = packed(members, takenAt);
  try {
    writeAll(fd, archive);
    if (fd !== STDOUT) {
      fsyncSync(fd);
      closeSync(fd);
    }
  } catch (thrown) {
    io.stderr(`The bundle ${path} is not complete: ${describeError(thrown)}. Delete it, and name another FILE.\n`);
    return ExitCode.unknown;
  }
  const size = `${Math.ceil(archive.length / 1024)} KiB, ${members.length} files`;
  const shown = path === "-" ? "standard output" : resolve(path);
  io.stderr(
    `Wrote ${shown} (${size}). Values that may be secrets are replaced; names of pods, namespaces, nodes and images are in it: read it before you send it.\nRead it anywhere: unghost scan --from ${path === "-" ? "FILE" : path}\n`,
  );
  return ExitCode.ok;
}

/** Never one that exists, and for its owner alone. */
function newPrivateFile(path: string): number {
  try {
    return openSync(path, "wx", 0o600);
  } catch (thrown) {
    const hint = errorCode(thrown) === "EEXIST" ? "it exists already" : describeError(thrown);
    throw new SettingsError(`${path} cannot be written: ${hint}; name another FILE, or - for standard output`);
  }
}

interface Taking {
  readonly env: Io["env"];
  readonly takenAt: Date;
}

async function membersOf(settings: NodeSettings, config: string, { env, takenAt }: Taking): Promise<readonly Member[]> {
  const { hostRoot, node, timeoutMs } = settings;
  const { snapshot, diagnosis, plan } = await scanNode({
    observe: async () => withoutSecrets(await observeNode(settings, env)),
    policy: () => ({ ...settings, allDead: false, cap: DEFAULT_CAP }),
  });
  const failedHeals = Object.fromEntries(await failuresOf(settings));
  const report = withPlan(buildReport(snapshot, diagnosis), plan);
  const saved = savedScanDocument({
    version: VERSION,
    settings: settingsToSave(settings),
    failedHeals: redactDeep(failedHeals) as typeof failedHeals,
    snapshot,
  });
  const logs = await logFiles(hostRoot, snapshot.runtime.endpoint, AbortSignal.timeout(timeoutMs));
  const configs = nodeConfigs(hostRoot, config);
  const documents = [
    { name: SAVED_SCAN, text: stringify(saved) },
    { name: "report.json", text: stringify(report, 1) },
    { name: "history.json", text: stringify(redactDeep(await historyOf(settings)), 1) },
  ];
  const fits = ({ name, text }: Member): boolean =>
    Buffer.byteLength(text) <= MAX_ENTRY_BYTES[name === SAVED_SCAN ? "snapshot" : "other"];
  const tooLarge = documents.filter((one) => !fits(one)).map(({ name }) => `${name}: too large`);
  const kept = [...documents.filter(fits), ...logs.members, ...configs.members];
  const manifest = {
    apiVersion: "unghost.dev/v1",
    kind: "Bundle",
    version: VERSION,
    node,
    takenAt: takenAt.toISOString(),
    kernel: release(),
    runtime: snapshot.runtime,
    files: kept.map(({ name }) => name),
    leftOut: [...tooLarge, ...logs.leftOut, ...configs.leftOut],
  };
  return [{ name: "manifest.json", text: stringify(manifest, 1) }, ...kept];
}

/** Redacted before it is diagnosed, so that the report in the bundle is the one that `scan --from` makes of it. */
function withoutSecrets(snapshot: Snapshot): Snapshot {
  // Only strings are replaced.
  return redactDeep(snapshot) as Snapshot;
}

async function historyOf(settings: NodeSettings): Promise<unknown> {
  const found = await findStateDir(stateDirOf(settings), process.getuid?.() ?? 0);
  if (!found.ok) return { problem: found.refusal.message };
  const whole = found.value === undefined ? { records: [], problems: [] } : await readHistory(found.value.journal);
  return historyDocument({ ...whole, records: whole.records.slice(-MAX_HISTORY) });
}

/** 20260131T093000Z */
function stampOf(date: Date): string {
  return date.toISOString().replace(/\.\d+/, "").replaceAll(/[-:]/g, "");
}
