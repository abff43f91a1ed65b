import type { Finding } from "../evidence/finding.ts";
import { containerdBehaviour, crioBehaviour, parseVersion } from "../evidence/versions.ts";
import { type Source, valueOr } from "../host/source.ts";
import type { ConfiguredBinDirs } from "../node/containerd-config.ts";
import type { CniConfFile, ScratchFile } from "../node/types/cni.ts";
import type { MetadataFile, Snapshot } from "../node/types/snapshot.ts";
import type { Risk } from "./doctor-report.ts";

export const RESTARTS = ["reboot", "runtime", "cni"] as const;
export type Restart = (typeof RESTARTS)[number];

/**
 * - `stops`: after this restart the node, or a pod of it, does not come back on its own.
 * - `unknown`: something that decides this could not be read.
 * - `note`: the restart survives it.
 */
export interface Hazard {
  readonly id: string;
  readonly level: "stops" | "unknown" | "note";
  readonly detail: string;
  /** What to do before the restart. */
  readonly end: string;
}

export interface Before {
  readonly restart: Restart;
  readonly survives: "yes" | "no" | "unknown";
  readonly hazards: readonly Hazard[];
  /** Findings of a scan, with or without this restart. */
  readonly findings: number;
}

export interface RestartFacts {
  readonly snapshot: Snapshot;
  readonly metadata: Source<MetadataFile>;
  /** What a scan finds now. */
  readonly present: readonly Finding[];
  /** What the runtime's database shows, as its next start reads it. */
  readonly stored: readonly Finding[];
  /** Of the program that the next start runs; undefined if it is not known. */
  readonly nextVersion: string | undefined;
  /** The runtime's files of configuration that do not parse. */
  readonly unparsable: readonly { readonly file: string; readonly problem: string }[];
  readonly binDirs: readonly ConfiguredBinDirs[];
  readonly confFiles: readonly CniConfFile[];
  readonly shim: readonly Risk[];
  /** File systems without room, in words. */
  readonly full: readonly string[];
  /** Files in the directory of static pods that have no bytes. */
  readonly emptyManifests: readonly string[];
  readonly otherManifestsUnread: boolean;
  readonly bootHook: boolean;
}

/** What the next restart would not survive. Pure. */
export function beforeRestart(restart: Restart, facts: RestartFacts): Before {
  const found = [
    ...unreadSources(facts),
    ...network(facts),
    ...(restart === "cni" ? [] : [...runtimeStart(facts), ...binDir(facts)]),
    ...(restart === "reboot" ? [...tornFiles(facts), ...staticPods(facts), ...bootHook(facts)] : []),
    ...facts.shim.map(({ id, detail, end }): Hazard => ({ id, level: "stops", detail, end })),
  ];
  const has = (level: Hazard["level"]): boolean => found.some((one) => one.level === level);
  const survives = has("stops") ? "no" : has("unknown") ? "unknown" : "yes";
  const rank = { stops: 0, unknown: 1, note: 2 } as const;
  const hazards = found.toSorted((one, other) => rank[one.level] - rank[other.level]);
  return { restart, survives, hazards, findings: facts.present.length };
}

function unreadSources({ snapshot: { cri, runtime } }: RestartFacts): readonly Hazard[] {
  if (cri.status === "read") return [];
  const why = cri.status === "failed" ? cri.error.message : cri.reason;
  const detail = runtime.reachable ? `the runtime's lists were not read: ${why}` : `the runtime was not asked: ${why}`;
  return [{ id: "runtime", level: "unknown", detail, end: "unghost doctor names what is missing" }];
}

/** The runtime loads its database and its configuration at its start, and ends where it cannot. */
function runtimeStart({ metadata, stored, unparsable, full }: RestartFacts): readonly Hazard[] {
  const unread: Hazard[] =
    metadata.status === "failed"
      ? [
          {
            id: "runtime database",
            level: "unknown",
            detail: metadata.error.message,
            end: metadata.error.next ?? "unghost doctor names what is missing",
          },
        ]
      : [];
  return [
    ...unread,
    ...stored.map((finding): Hazard => {
      const stops = finding.blocks.length > 0;
      const end = stops
        ? `unghost explain ${finding.class}; once the runtime is down: unghost boot --repair`
        : `unghost scan; unghost explain ${finding.class}`;
      return { id: finding.class, level: stops ? "stops" : "note", detail: finding.summary, end };
    }),
    ...unparsable.map(({ file, problem }): Hazard => {
      const detail = `${file} does not parse, and the runtime reads it at its start: ${problem}`;
      return { id: "runtime configuration", level: "stops", detail, end: `correct ${file}` };
    }),
    ...full.map((detail): Hazard => {
      return { id: "disk", level: "stops", detail, end: "free space: the runtime cannot open its database without" };
    }),
  ];
}

const LIST_ONLY = 4;

/** containerd 2.4 reads the list alone. */
function binDir({ binDirs, snapshot: { runtime }, nextVersion }: RestartFacts): readonly Hazard[] {
  if (runtime.name !== "containerd") return [];
  const next = nextVersion === undefined ? undefined : parseVersion(nextVersion);
  const isListOnly = next !== undefined && (next.major > 2 || (next.major === 2 && next.minor >= LIST_ONLY));
  return binDirs.flatMap(({ file, single, list }): readonly Hazard[] => {
    if (single === undefined || single === "/opt/cni/bin" || list.length > 0) return [];
    const which =
      next === undefined ? "the containerd that starts next is not known" : `containerd ${nextVersion} starts next`;
    const then = isListOnly ? "does not read it: no CNI plugin is found" : "reads it; 2.4 and later do not";
    return [
      {
        id: "containerd bin_dir",
        level: next === undefined ? "unknown" : isListOnly ? "stops" : "note",
        detail: `${file} sets bin_dir = "${single}"; ${which}${next === undefined ? ", and 2.4 and later do not read it" : `, which ${then}`}`,
        end: `in the same section: bin_dirs = ["${single}"]`,
      },
    ];
  });
}

/** A runtime that runs keeps the configuration that it has loaded; one that starts needs a file that is valid now. */
function network({ snapshot: { cni }, confFiles }: RestartFacts): readonly Hazard[] {
  if (cni.conf.status !== "read") {
    const why = cni.conf.status === "failed" ? cni.conf.error.message : cni.conf.reason;
    const detail = `there is no network configuration to start with: ${why}`;
    return [{ id: "cni configuration", level: "stops", detail, end: "restore it, or restart the network's DaemonSet" }];
  }
  const { file, binDirs, plugins } = cni.conf.value;
  const missing = plugins.filter(({ binaryFound }) => !binaryFound).map(({ type }) => type);
  const isMissing: Hazard[] =
    missing.length === 0
      ? []
      : [
          {
            id: "cni plugins",
            level: "stops",
            detail: `${file} needs ${missing.join(", ")}, and ${binDirs.join(", ")} does not have it: no pod starts`,
            end: "install the plugin, or restart the DaemonSet that installs it",
          },
        ];
  const [first] = confFiles;
  const lost = first?.missingKubeconfigs ?? [];
  return [
    ...isMissing,
    ...lost.map((path): Hazard => {
      const detail = `${first?.file} names the kubeconfig ${path}, which does not exist`;
      return { id: "cni kubeconfig", level: "note", detail, end: "restart the DaemonSet that writes it" };
    }),
  ];
}

/** A reboot ends every pod, and its removal needs these files; until then nothing reads them. */
function tornFiles({ snapshot, nextVersion, bootHook: hasHook }: RestartFacts): readonly Hazard[] {
  const { runtime, cni } = snapshot;
  const version = nextVersion ?? runtime.version;
  const behaviour = runtime.name === "cri-o" ? crioBehaviour(version) : containerdBehaviour(version);
  const delegates = [...(valueOr(cni.multus, undefined)?.files.filter((one) => one.isMarker !== true) ?? [])];
  const blocking = [
    ...(behaviour?.corruptResultBlocks === true ? valueOr(cni.results, []) : []),
    ...delegates,
    ...valueOr(cni.flannel, []),
  ].filter(isTorn);
  const harmless = behaviour?.corruptResultBlocks === true ? [] : valueOr(cni.results, []).filter(isTorn);
  const shown = (files: readonly ScratchFile[]): string => {
    const [first] = files;
    return `${files.length === 1 ? "1 torn file" : `${files.length} torn files`} of CNI plugins, such as ${first?.path}`;
  };
  const hazards: Hazard[] = [];
  if (blocking.length > 0) {
    hazards.push({
      id: "torn files",
      level: hasHook ? "note" : "stops",
      detail: `${shown(blocking)}: after the reboot the removal of their pods fails${hasHook ? "; the boot hook moves them aside before" : ""}`,
      end: hasHook ? "nothing" : "unghost install: its boot hook moves them to quarantine before the runtime starts",
    });
  }
  if (harmless.length > 0) {
    const detail = `${shown(harmless)}: this runtime ignores them, and their addresses may leak`;
    hazards.push({ id: "torn results", level: "note", detail, end: "unghost heal after the reboot" });
  }
  return hazards;
}

function isTorn({ health }: ScratchFile): boolean {
  return health === "empty" || health === "corrupt";
}

/** Kubelet makes static pods again from their files alone. */
function staticPods({ snapshot, emptyManifests, otherManifestsUnread }: RestartFacts): readonly Hazard[] {
  const manifests = snapshot.staticManifests;
  if (manifests?.status === "failed") {
    const { message, next = "check its owner" } = manifests.error;
    return [{ id: "static pods", level: "stops", detail: message, end: next }];
  }
  if (manifests?.status !== "read") return [];
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  const without = sandboxes.filter(
    ({ state, pod, annotations }) =>
      state === "ready" &&
      annotations["kubernetes.io/config.source"] === "file" &&
      !manifests.value.some(({ name, namespace }) => namespace === pod.namespace && pod.name.startsWith(`${name}-`)),
  );
  return [
    ...emptyManifests.map((path): Hazard => {
      return {
        id: "static pods",
        level: "stops",
        detail: `${path} is empty: its pod does not come back`,
        end: "restore the file",
      };
    }),
    ...without.map(({ pod }): Hazard => {
      const detail = `the static pod ${pod.namespace}/${pod.name} runs, and no file of it was found in kubelet's directory`;
      // One of the files that were not understood may be its own.
      const level = otherManifestsUnread ? "unknown" : "stops";
      return { id: "static pods", level, detail, end: "restore its manifest, or delete the pod if it was meant to go" };
    }),
  ];
}

function bootHook({ bootHook: has }: RestartFacts): readonly Hazard[] {
  if (has) return [];
  const detail =
    "there is no boot hook: what the reboot leaves is healed only where the agent runs, after the runtime's start";
  return [{ id: "boot hook", level: "note", detail, end: "unghost install" }];
}
