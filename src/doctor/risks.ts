import { compareVersions, parseVersion } from "../evidence/versions.ts";
import { CNI_GUARD_BIN_DIR } from "../host/distributions.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { procText } from "../host/proc.ts";
import { entriesIn } from "../host/safe-fs.ts";
import { valueOr } from "../host/source.ts";
import { faultInFront, readCniConfFiles } from "../node/cni-conf-files.ts";
import { type ConfiguredBinDirs, configuredBinDirs } from "../node/containerd-config.ts";
import { readInotifyUse } from "../node/inotify.ts";
import { readProcessTable } from "../node/process-table.ts";
import type { CniConfFile } from "../node/types/cni.ts";
import type { Runtime } from "../node/types/runtime.ts";
import type { InotifyUse, Snapshot } from "../node/types/snapshot.ts";
import type { Risk } from "./doctor-report.ts";
import { shimRisk } from "./multus-shim.ts";
import { runtimeRisk } from "./runtime-support.ts";

/** What makes ghosts likely on this node, from its files and processes. None of it is a fault now. */
export async function nodeRisks(snapshot: Snapshot, root: string, timeoutMs: number): Promise<readonly Risk[]> {
  const { runtime, cni, multusDaemon } = snapshot;
  const signal = AbortSignal.timeout(timeoutMs);
  const table = await readProcessTable({ root, signal });
  const inotify = valueOr(await readInotifyUse({ root, table, signal }), undefined);
  const conf = valueOr(cni.conf, undefined);
  const files = conf === undefined ? [] : readCniConfFiles(root, conf.dir, conf.binDirs);
  return [
    ...runtimeRisk(runtime),
    ...binDirRisk(runtime, await configuredBinDirs(root, runtime.process?.pid)),
    ...staleConfRisk(files),
    ...versionRisk(files),
    ...shimRisk(root, conf, multusDaemon),
    ...(inotify === undefined ? [] : inotifyRisk(inotify)),
    ...clockRisk(root),
  ];
}

const LIST_ONLY_SINCE = { major: 2, minor: 4, patch: 0 };
const LIST_SINCE = { major: 2, minor: 1, patch: 0 };
const DEFAULT_BIN_DIR = "/opt/cni/bin";

/** containerd 2.4 reads the list alone: a node that sets only the single directory has no network after the upgrade. */
export function binDirRisk(
  { name, version: text }: Pick<Runtime, "name" | "version">,
  files: readonly ConfiguredBinDirs[],
): readonly Risk[] {
  const version = parseVersion(text);
  if (name !== "containerd" || version === undefined) return [];
  return files.flatMap(({ file, single, list }) => {
    if (single === undefined || single === DEFAULT_BIN_DIR || list.length > 0) return [];
    const isGuards = single === CNI_GUARD_BIN_DIR;
    const isLater = compareVersions(version, LIST_ONLY_SINCE) < 0;
    const detail = isLater
      ? `${file} sets bin_dir = "${single}", which containerd 2.4 no longer reads: after that upgrade the node finds no CNI plugin`
      : `${file} sets bin_dir = "${single}", which containerd ${text} does not read: plugins are searched in ${DEFAULT_BIN_DIR}`;
    const when = compareVersions(version, LIST_SINCE) < 0 ? "With the upgrade to 2.1 or later" : "Now";
    return [
      {
        id: "containerd bin_dir",
        detail,
        end: isGuards ? `${when}: unghost cni install` : `${when}, in the same section: bin_dirs = ["${single}"]`,
      },
    ];
  });
}

export function staleConfRisk(files: readonly CniConfFile[]): readonly Risk[] {
  const stale = faultInFront(files);
  if (stale === undefined) return [];
  const { file, fault, working } = stale;
  return [
    {
      id: "stale CNI configuration in front",
      detail: `the runtime uses ${file}, and ${fault}; ${working} comes after it`,
      end: `If no pod of this cluster serves that plugin any more: mv ${file} ${file}.disabled`,
    },
  ];
}

export function versionRisk(files: readonly CniConfFile[]): readonly Risk[] {
  const versions = new Set(files.map(({ cniVersion }) => cniVersion));
  if (versions.size < 2 && !versions.has(undefined)) return [];
  const seen = files.map(({ file, cniVersion }) => `${file}: ${cniVersion ?? "none"}`).join(", ");
  const known = [...versions].filter((one) => one !== undefined).toSorted(byVersion);
  return [
    {
      id: "mixed cniVersion",
      detail: `the network configurations do not agree on cniVersion: ${seen}`,
      end: `Set "cniVersion": "${known[0] ?? "1.0.0"}" in each of them, or a later one that all their plugins support.`,
    },
  ];
}

function byVersion(one: string, other: string): number {
  const [first, second] = [parseVersion(one), parseVersion(other)];
  return first === undefined || second === undefined ? 0 : compareVersions(first, second);
}

/** Enough for 250 pods, each with several containers. */
const ENOUGH_INSTANCES = 1024;

export function inotifyRisk({ limit, used, holders }: InotifyUse): readonly Risk[] {
  if (limit >= ENOUGH_INSTANCES && used * 2 < limit) return [];
  const most = holders.map(({ name, count }) => `${name} ${count}`).join(", ");
  return [
    {
      id: "inotify instances",
      detail: `fs.inotify.max_user_instances is ${limit}, root holds ${used}${most === "" ? "" : ` (${most})`}, and each container needs one or two`,
      end: "sysctl -w fs.inotify.max_user_instances=8192, and the same line in /etc/sysctl.d/90-inotify.conf",
    },
  ];
}

/** A hypervisor provides the time at boot without a clock device. */
const VIRTUAL_CLOCK = /\b(?:kvm-clock|hyperv_|xen)/;

export function clockRisk(root: string): readonly Risk[] {
  const source = procText(hostPath(root, "/sys/devices/system/clocksource/clocksource0/available_clocksource")).trim();
  const clocks = entriesIn(resolveOnHost(root, "/sys/class/rtc", "follow"));
  // Without /sys nothing is known about the machine's clocks.
  if (source === "" || clocks.length > 0 || VIRTUAL_CLOCK.test(source)) return [];
  return [
    {
      id: "no real-time clock",
      detail:
        "the machine has no clock that runs without power: at boot the time is wrong until it was asked for over the network",
      end: "Order kubelet and containerd after time-sync.target (systemctl enable systemd-time-wait-sync), or fit a clock module.",
    },
  ];
}
