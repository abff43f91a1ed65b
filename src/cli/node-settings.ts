import { hostname } from "node:os";
import { type FlagValues, flagsOf, list, onOff, text } from "./flag-kinds.ts";
import * as kinds from "./setting-kinds.ts";
import type { Raw } from "./setting-values.ts";

/**
 * The table of all settings of node commands: flag, environment variable, key of the file, `unghost config` and
 * docs/configuration.md are derived from it. `as` is its name in NodeSettings if that contains the unit.
 */
const PLACES = {
  runtimeEndpoint: {
    ...kinds.endpoint,
    flag: text("Socket of the container runtime (default: detected)", "unix://PATH"),
    meaning: "Socket of the container runtime. None: detected.",
  },
  cniCacheDir: {
    ...kinds.absolutePath("/var/lib/cni"),
    flag: text("Where libcni, multus, flannel and host-local keep their files (default /var/lib/cni)", "DIR"),
    meaning: "Where libcni, multus, flannel and host-local keep their files.",
  },
  /** multus' delegate cache; by default from its own configuration. */
  multusDir: {
    ...kinds.absolutePath(undefined),
    flag: text("Where multus keeps its delegate cache (default: from its configuration)", "DIR"),
    meaning: "Where multus keeps its delegate cache. Default: from its configuration.",
  },
  stateDir: {
    ...kinds.absolutePath("/var/lib/unghost"),
    flag: text("Where unghost keeps its journal and quarantine (default /var/lib/unghost)", "DIR"),
    meaning: "Journal, quarantine, and what the agent remembers.",
  },
  kubeconfig: {
    ...kinds.plainText(() => undefined, "path"),
    flag: text("Credentials for the Kubernetes API (default: those of the pod, else kubelet's)", "FILE"),
    meaning: "Credentials for the Kubernetes API. None: those of the pod, else kubelet's.",
  },
  node: {
    ...kinds.plainText(hostname, "text"),
    flag: text("Name of this node in Kubernetes (default: the host name)", "NAME"),
    byDefault: "the host name",
    meaning: "Name of this node in Kubernetes. `NODE_NAME` in the environment is read, too.",
  },
  noKube: {
    ...kinds.bool,
    flag: onOff("Ask neither the Kubernetes API nor kubelet's directories about pods"),
    meaning: "Ask neither the Kubernetes API nor kubelet's directories.",
  },
  hostRoot: {
    ...kinds.absolutePath("/"),
    flag: text("Where the host's file system is mounted, in a container (default /)", "DIR"),
    meaning: "Where the host's file system is mounted, for containers.",
  },
} as const;

const BEHAVIOUR = {
  output: {
    ...kinds.outputFormat,
    flag: text("table, json or yaml (default table)", "FORMAT"),
    meaning: "How reports are printed.",
  },
  /** Timeout per data source of a scan. Actions have their own timeouts. Nothing answers faster than 10 ms. */
  timeout: {
    ...kinds.duration(10, 4000),
    as: "timeoutMs",
    flag: text("Timeout per data source (default 4s)", "DURATION"),
    meaning: "Timeout per data source of a scan.",
  },
  /** How long a sandbox must have been dead to be a finding while a kubelet is running. */
  minAge: {
    ...kinds.duration(0, 10 * 60_000),
    as: "minAgeMs",
    flag: text("Leave alone what is dead for less than this while a kubelet is alive (default 10m)", "DURATION"),
    meaning: "What has been dead for less than this is left to a kubelet that is alive.",
  },
  /** How long a sandbox creation may take. Kubelet times out after 4 min, containerd's rollback takes 1 more. */
  inflightGrace: {
    ...kinds.duration(0, 10 * 60_000),
    as: "inflightGraceMs",
    flag: text(
      "How long a sandbox creation may take (default 10m; 30s after kubelet or the runtime reported its timeout)",
      "DURATION",
    ),
    meaning: "How long the creation of a sandbox may take.",
  },
  /** How long a volume may wait to be attached. External attachers normally retry for minutes. */
  volumeAttachmentAge: {
    ...kinds.duration(0, 5 * 60_000),
    as: "volumeAttachmentAgeMs",
    flag: text("How long a volume may wait to be attached to this node (default 5m)", "DURATION"),
    meaning: "How long a volume may wait to be attached.",
  },
  concurrency: {
    ...kinds.wholeNumber(1, 256, 32),
    flag: text("Sandboxes healed concurrently (default 32)", "N"),
    meaning: "Sandboxes healed concurrently.",
  },
  only: {
    ...kinds.list,
    flag: list("Only these failure classes", "CLASS"),
    meaning: "Only these failure classes.",
  },
  skip: {
    ...kinds.list,
    flag: list("All failure classes but these", "CLASS"),
    meaning: "All failure classes but these.",
  },
  verbose: { ...kinds.bool, flag: onOff("Verbose output"), meaning: "Verbose output." },
} as const;

export const NODE_SETTINGS = { ...PLACES, ...BEHAVIOUR };

type Table = typeof NODE_SETTINGS;
export type SettingKey = keyof Table;

export const SETTING_KEYS = Object.keys(NODE_SETTINGS) as readonly SettingKey[];

/** Settings of every command that scans a node. Flag overrides environment overrides file overrides default. */
export type NodeSettings = {
  readonly [Key in SettingKey as Table[Key] extends { readonly as: infer Name extends string }
    ? Name
    : Key]: ReturnType<Table[Key]["read"]>;
} & {
  /** Set with --inflight-grace: then it also applies to a creation whose caller timed out. */
  readonly abandonedGraceMs?: number;
};

/** Parses the settings. Throws a SettingsError for the first invalid one. */
export function readSettings(raw: (key: SettingKey) => Raw | undefined): NodeSettings {
  const settings = Object.fromEntries(SETTING_KEYS.map((key) => [nameOf(key), NODE_SETTINGS[key].read(raw(key))]));
  // The loop produces the mapped type, which the compiler cannot infer.
  return settings as unknown as NodeSettings;
}

/** Each value in the format of the configuration file. */
export function writtenSettings(settings: NodeSettings): Readonly<Record<SettingKey, unknown>> {
  const values: Readonly<Record<string, unknown>> = settings;
  const written = SETTING_KEYS.map((key) => {
    const { write }: { readonly write: (value: never) => unknown } = NODE_SETTINGS[key];
    return [key, write(values[nameOf(key)] as never)];
  });
  return Object.fromEntries(written) as Readonly<Record<SettingKey, unknown>>;
}

function nameOf(key: SettingKey): string {
  const setting = NODE_SETTINGS[key];
  return "as" in setting ? setting.as : key;
}

/** The flags of every node command. */
export const nodeFlags = {
  ...flagsOf(PLACES),
  config: text("Configuration file (default /etc/unghost/config.yaml)", "FILE"),
  ...flagsOf(BEHAVIOUR),
};

export const nodeFlagAliases = { o: "output", v: "verbose" } as const;

/** From the command line: everything optional, everything still a string except for switches and lists. */
export type NodeFlags = FlagValues<typeof nodeFlags>;

const { stateDir, hostRoot, config, output } = nodeFlags;

/** For commands that read the journal and the quarantine, and do not scan the node. */
export const stateFlags = { stateDir, hostRoot, config, output };

export type StateFlags = Pick<NodeFlags, keyof typeof stateFlags>;

const KEEPER = ["runtimeEndpoint", "cniCacheDir", "multusDir", "hostRoot", "config", "timeout", "verbose"] as const;

/** For the command that syncs files of CNI plugins. */
export const keeperFlags = hidingAllBut(KEEPER);

/** For the command that reads each source, and diagnoses nothing. */
export const sourceFlags = hidingAllBut([...KEEPER, "stateDir", "kubeconfig", "node", "noKube", "output"]);

/** For the agent, which prints no report, and whose log has a level. */
export const agentNodeFlags = { ...nodeFlags, output: hidden(output), verbose: hidden(nodeFlags.verbose) };

/** Help lists what has an effect. The others are accepted, so that scripts can pass the same flags to each command. */
function hidingAllBut(listed: readonly (keyof NodeFlags)[]): typeof nodeFlags {
  const flags = Object.entries(nodeFlags).map(([key, flag]) => [
    key,
    listed.some((one) => one === key) ? flag : hidden(flag),
  ]);
  return Object.fromEntries(flags) as typeof nodeFlags;
}

function hidden<Flag extends object>(flag: Flag): Flag & { readonly hidden: true } {
  return { ...flag, hidden: true };
}
