import { MAX_ARCHIVE_BYTES, readSavedScan, type SavedScan } from "../bundle/saved-scan.ts";
import { namedFile } from "../host/paths.ts";
import { fileBytes } from "../host/safe-fs.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Plan } from "../plan/plan.ts";
import { withFailedHeals } from "../report/build.ts";
import type { NodeReport } from "../report/node-report.ts";
import { withPlan } from "../report/plan.ts";
import type { Io } from "./io.ts";
import { SettingsError } from "./settings/kinds.ts";
import { givenOutside, type NodeKey, type NodeSettings, nodeSettings } from "./settings/read.ts";
import { NODE, type NodeFlags, writtenValues } from "./settings/table.ts";
import { VERSION } from "./version.ts";

/** What the diagnosis of a snapshot depends on. The rest is about reaching a node. */
const OF_THE_SCAN: readonly NodeKey[] = ["node", "minAge", "inflightGrace", "volumeAttachmentAge", "only", "skip"];

/** For a bundle. The grace is saved only where somebody set it, because setting it has a meaning of its own. */
export function settingsToSave(settings: NodeSettings): SavedScan["settings"] {
  const written = writtenValues(NODE, settings).filter(
    ({ key }) =>
      OF_THE_SCAN.some((one) => one === key) && (key !== "inflightGrace" || settings.abandonedGraceMs !== undefined),
  );
  return Object.fromEntries(written.map(({ key, value }) => [key, value]));
}

type Scan = (observe: () => Promise<Snapshot>) => Promise<{ readonly report: NodeReport; readonly plan: Plan }>;

export interface OpenedScan {
  readonly settings: NodeSettings;
  /** Prints the node and the time of the scan on stderr, because the table has neither. */
  readonly report: (scan: Scan, io: Pick<Io, "stderr">) => Promise<NodeReport>;
}

/** `scan --from FILE`: with the settings of the bundle, except for flags given now. The configuration of this machine is not read. */
export function openSavedScan(path: string, flags: NodeFlags): OpenedScan {
  const archive = fileBytes(namedFile(path), MAX_ARCHIVE_BYTES);
  if (archive === undefined) {
    throw new SettingsError(
      `--from: cannot read ${path}: it does not exist, or is no file of at most ${MAX_ARCHIVE_BYTES} bytes`,
    );
  }
  const read = readSavedScan(archive);
  if (!read.ok) throw new SettingsError(`--from: ${path} is not a bundle that can be read: ${read.why}`);
  const { settings: saved, ...rest } = read.saved;
  const settings = nodeSettings((key) => {
    const given = givenOutside(key, flags, {});
    if (given !== undefined || !OF_THE_SCAN.includes(key) || !Object.hasOwn(saved, key)) return given;
    return { value: saved[key] ?? undefined, from: `${path}: ${key}` };
  });
  return { settings, report: (scan, io) => reportOn(path, rest, scan, io) };
}

async function reportOn(
  path: string,
  { snapshot, version, failedHeals }: Omit<SavedScan, "settings">,
  scan: Scan,
  io: Pick<Io, "stderr">,
): Promise<NodeReport> {
  const by = version === VERSION ? "" : `, by unghost ${version}`;
  io.stderr(`A bundle of ${snapshot.node}, taken at ${snapshot.observedAt.toISOString()}${by}.\n`);
  try {
    const { report, plan } = await scan(() => Promise.resolve(snapshot));
    return withPlan(withFailedHeals(report, new Map(Object.entries(failedHeals))), plan);
  } catch (thrown) {
    if (thrown instanceof SettingsError) throw thrown;
    // Only the frame of the snapshot was checked: a wrong value inside ends here.
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new SettingsError(`--from: the snapshot in ${path} cannot be diagnosed: ${why}`);
  }
}
