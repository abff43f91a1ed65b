import { hostname } from "node:os";
import * as v from "valibot";
import { OUTPUT_FORMATS } from "../../report/output.ts";
import * as kinds from "./kinds.ts";

/**
 * One setting. Its key in the file, flag, environment variable, `unghost config`, help, completion, man page, the
 * chart's schema and docs/configuration.md follow from it.
 */
interface Setting extends kinds.Kind {
  /** Without it, the setting is optional. */
  readonly byDefault?: unknown;
  /** For documents, where there is no such value. */
  readonly defaultInWords?: string;
  /** Its line of help, and the placeholder of its value. Without it, the setting is given in the file alone. */
  readonly flag?: readonly [brief: string, placeholder?: string];
  /** For documents. Without it, they show the line of help. */
  readonly meaning?: string;
}

export type Settings = Readonly<Record<string, Setting>>;

/** The default is as in the file. */
function withDefault<One extends kinds.Kind, Default>(kind: One, byDefault: Default) {
  return { ...kind, byDefault };
}

const PLACES = {
  runtimeEndpoint: {
    ...kinds.endpoint,
    flag: ["Socket of the container runtime (default: detected)", "unix://PATH"],
    meaning: "Socket of the container runtime. None: detected.",
  },
  cniCacheDir: {
    ...withDefault(kinds.absolutePath, "/var/lib/cni"),
    flag: ["Where libcni, multus, flannel and host-local keep their files (default /var/lib/cni)", "DIR"],
  },
  multusDir: {
    ...kinds.absolutePath,
    flag: ["Where multus keeps its delegate cache (default: from its configuration)", "DIR"],
    meaning: "Where multus keeps its delegate cache. Default: from its configuration.",
  },
  stateDir: {
    ...withDefault(kinds.absolutePath, "/var/lib/unghost"),
    flag: ["Where unghost keeps its journal and quarantine (default /var/lib/unghost)", "DIR"],
    meaning: "Journal, quarantine, and what the agent remembers.",
  },
  kubeconfig: {
    ...kinds.plainText("path"),
    flag: ["Credentials for the Kubernetes API (default: those of the pod, else kubelet's)", "FILE"],
    meaning: "Credentials for the Kubernetes API. None: those of the pod, else kubelet's.",
  },
  node: {
    ...withDefault(kinds.plainText("text"), hostname()),
    defaultInWords: "the host name",
    flag: ["Name of this node in Kubernetes (default: the host name)", "NAME"],
    meaning: "Name of this node in Kubernetes. `NODE_NAME` in the environment is read, too.",
  },
  noKube: {
    ...withDefault(kinds.yesNo, false),
    flag: ["Ask neither the Kubernetes API nor kubelet's directories about pods"],
    meaning: "Ask neither the Kubernetes API nor kubelet's directories.",
  },
  hostRoot: {
    ...withDefault(kinds.absolutePath, "/"),
    flag: ["Where the host's file system is mounted, in a container (default /)", "DIR"],
    meaning: "Where the host's file system is mounted, for containers.",
  },
} as const satisfies Settings;

const BEHAVIOUR = {
  output: {
    ...withDefault(kinds.choice(OUTPUT_FORMATS, "expected one of"), "table"),
    flag: ["table, json or yaml (default table)", "FORMAT"],
    meaning: "How reports are printed.",
  },
  /** Actions have their own timeouts. Nothing answers faster than 10 ms. */
  timeout: {
    ...withDefault(kinds.duration("10ms"), "4s"),
    flag: ["Timeout per data source (default 4s)", "DURATION"],
    meaning: "Timeout per data source of a scan.",
  },
  /** How long a sandbox must have been dead to be a finding while a kubelet is running. */
  minAge: {
    ...withDefault(kinds.duration("0s"), "10m"),
    flag: ["Leave alone what is dead for less than this while a kubelet is alive (default 10m)", "DURATION"],
    meaning: "What has been dead for less than this is left to a kubelet that is alive.",
  },
  /** Kubelet times out after 4 min, containerd's rollback takes 1 more. */
  inflightGrace: {
    ...withDefault(kinds.duration("0s"), "10m"),
    flag: [
      "How long a sandbox creation may take (default 10m; 30s after kubelet or the runtime reported its timeout)",
      "DURATION",
    ],
    meaning: "How long the creation of a sandbox may take.",
  },
  /** External attachers normally retry for minutes. */
  volumeAttachmentAge: {
    ...withDefault(kinds.duration("0s"), "5m"),
    flag: ["How long a volume may wait to be attached to this node (default 5m)", "DURATION"],
    meaning: "How long a volume may wait to be attached or unmounted.",
  },
  concurrency: {
    ...withDefault(kinds.wholeNumber(1, 256), 32),
    flag: ["Sandboxes healed concurrently (default 32)", "N"],
  },
  only: {
    ...withDefault(kinds.listOf(kinds.plainText(""), "[classes](classes.md)"), []),
    flag: ["Only these failure classes", "CLASS"],
  },
  skip: {
    ...withDefault(kinds.listOf(kinds.plainText(""), "[classes](classes.md)"), []),
    flag: ["All failure classes but these", "CLASS"],
  },
  verbose: { ...withDefault(kinds.yesNo, false), flag: ["Verbose output"] },
} as const satisfies Settings;

/** The top level of the file: settings of every command that scans a node. */
export const NODE = { ...PLACES, ...BEHAVIOUR };

/** Below `agent`; the classes and the maintenance windows come next. */
export const SCANNING = {
  scanEvery: {
    ...withDefault(kinds.duration("10ms", "24h"), "1m"),
    flag: ["Interval of the periodic full scan (default 60s)", "DURATION"],
    meaning: "Interval of the periodic full scan (fallback for missed events).",
  },
  observeOnly: {
    ...withDefault(kinds.yesNo, false),
    flag: ["Show everything, touch nothing"],
    meaning: "Overrides every other setting: report everything, change nothing.",
  },
} as const satisfies Settings;

const BUDGET = {
  minAge: {
    ...kinds.duration("0s", "24h"),
    meaning: "How long a finding must have been present before it is healed, by the monotonic clock.",
  },
  attempts: { ...kinds.wholeNumber(1, 100), meaning: "Attempts on one subject before it is given up." },
  within: { ...kinds.duration("1m", "168h"), meaning: "The period that attempts are counted over." },
  coolDown: {
    ...kinds.duration("1s", "24h"),
    meaning: "The pause after an attempt. It doubles with every failure, up to an hour, and is reset by a success.",
  },
} as const satisfies Settings;

/** Below `agent.classes.<class>`; the defaults depend on the class. */
export const CLASS = {
  mode: {
    ...kinds.choice(["observe", "heal", "off"]),
    meaning: "`heal` for classes that are healed automatically, else `observe`.",
  },
  ...BUDGET,
} as const satisfies Settings;

/** Below `agent.defaults`: healing needs consent by class name, so all together can only be set to observe. */
export const DEFAULTS = {
  mode: { ...kinds.choice(["observe"]), meaning: "Only observe every class that is not named in `agent.classes`." },
  ...BUDGET,
} as const satisfies Settings;

/** In the order of Date. */
export const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** In the list `agent.maintenanceWindows`. */
export const WINDOW = {
  days: {
    ...kinds.listOf(kinds.choice(DAYS), "`mon` to `sun`"),
    defaultInWords: "every day",
    meaning: "A list of days.",
  },
  from: { ...kinds.clockTime("23:59"), defaultInWords: "required", meaning: "First minute." },
  to: { ...kinds.clockTime("24:00"), defaultInWords: "required", meaning: "Minute after the last." },
  timeZone: { ...withDefault(kinds.timeZone, "UTC"), meaning: "Time zone of `from` and `to`." },
} as const satisfies Settings;

/** Below `agent`. */
export const LIMITS = {
  ignoreNamespaces: {
    ...withDefault(kinds.listOf(kinds.namespace, "names of namespaces"), []),
    meaning: "Nothing of these is touched, and none of their pods is restarted for the sake of others.",
  },
  recreatePods: {
    ...withDefault(kinds.yesNo, false),
    meaning:
      "Where a pod's name is held by something that no process explains: delete the pod, for its controller to make it again. Never a bare pod, a static one, or one that is left out.",
  },
  keepDurable: {
    ...withDefault(kinds.yesNo, true),
    meaning:
      "Sync the files of CNI plugins to disk as they are written, so that a power cut leaves none empty: see [durability.md](durability.md).",
  },
  quarantineRetention: {
    ...withDefault(kinds.retention, "30d"),
    meaning:
      "How long files and logs stay in quarantine. The agent deletes older entries every hour, `unghost quarantine prune` on demand; entries that an unfinished run or undo needs stay. After that `unghost undo` cannot put the file back.",
  },
  cap: {
    ...withDefault(kinds.wholeNumber(1, 10_000), 250),
    meaning:
      "The most subjects that one healing touches; the others are in the next one. Files that are only moved aside do not count.",
  },
} as const satisfies Settings;

/** Below `agent.fleet`. */
export const FLEET = {
  slots: { ...withDefault(kinds.wholeNumber(1, 1000), 3), meaning: "How many nodes may heal disruptively at once." },
  namespace: { ...withDefault(kinds.namespace, "unghost"), meaning: "Where the Leases of those slots are." },
  breakerShare: {
    ...withDefault(kinds.share, 0.3),
    meaning: "Share of unhealthy nodes from which on no node heals: the cause is then elsewhere.",
  },
  breakerAtLeast: {
    ...withDefault(kinds.wholeNumber(1, 10_000), 3),
    meaning: "Fewer unhealthy nodes than this never stop the others by their share.",
  },
  breakerNodes: {
    ...kinds.wholeNumber(1, 10_000),
    meaning: "Number of unhealthy nodes from which on no node heals, whatever their share.",
  },
} as const satisfies Settings;

/** Below `agent`: read once, at its start. */
export const SERVICE = {
  listen: {
    ...withDefault(kinds.listenAddress, "127.0.0.1:20258"),
    flag: ["Where metrics and the status page are served (default 127.0.0.1:20258; empty: nowhere)", "HOST:PORT"],
    meaning:
      "Metrics and status page. Beside one address of the node, loopback is served on the same port. `:20258` is every address.",
  },
  tlsCert: {
    ...kinds.absolutePath,
    flag: ["Serve over TLS, with this certificate", "FILE"],
    meaning: "Serve over TLS; goes with `tlsKey`.",
  },
  tlsKey: { ...kinds.absolutePath, flag: ["The certificate's key", "FILE"] },
  tokenFile: { ...kinds.absolutePath, flag: ["Answer only to the bearer token in this file", "FILE"] },
  textfile: {
    ...kinds.absolutePath,
    flag: ["Write the metrics to this file, too, for node_exporter's textfile collector", "FILE"],
    meaning: "Write the metrics to this file, too, for node_exporter.",
  },
  logLevel: {
    ...withDefault(kinds.choice(["debug", "info", "warn", "error"]), "info"),
    flag: ["debug, info, warn or error (default info)", "LEVEL"],
    meaning: "",
  },
} as const satisfies Settings;

type ValueOf<One> = One extends { readonly schema: v.GenericSchema<unknown, infer Value> }
  ? One extends { readonly byDefault: unknown }
    ? Value
    : Value | undefined
  : never;

/** The values of a group; durations are in milliseconds, and are called so. */
export type Values<Group extends Settings> = {
  readonly [Key in keyof Group & string as Group[Key] extends { readonly unit: "ms" } ? `${Key}Ms` : Key]: ValueOf<
    Group[Key]
  >;
};

/** Parsed values, with defaults where there are none. */
export function valuesOf<Group extends Settings>(
  group: Group,
  parsed: Readonly<Partial<Record<keyof Group, unknown>>>,
): Values<Group> {
  const values = Object.entries(group).map(([key, { schema, byDefault, unit }]) => {
    const value = parsed[key] ?? (byDefault === undefined ? undefined : v.parse(schema, byDefault));
    return [key + (unit === "ms" ? "Ms" : ""), value];
  });
  // The loop produces the mapped type, which the compiler cannot infer.
  return Object.fromEntries(values) as Values<Group>;
}

/** Each value in the format of the file. */
export function writtenValues<Group extends Settings>(group: Group, values: Values<Group>) {
  const all: Readonly<Record<string, unknown>> = values;
  return Object.entries(group).map(([key, { unit }]) => {
    const value = unit === "ms" ? kinds.durationText(Number(all[`${key}Ms`])) : all[key];
    return { key, value: value ?? null };
  });
}

type FlagOf<One> = One extends { readonly form: "switch" }
  ? ReturnType<typeof kinds.onOff>
  : One extends { readonly form: "list" }
    ? ReturnType<typeof kinds.list>
    : ReturnType<typeof kinds.text>;

function flagsOf<Group extends Settings>(group: Group) {
  const flags = Object.entries(group).map(([key, { form, flag: [brief, placeholder = ""] = [""] }]) => {
    if (form === "switch") return [key, kinds.onOff(brief)];
    return [key, form === "list" ? kinds.list(brief, placeholder) : kinds.text(brief, placeholder)];
  });
  return Object.fromEntries(flags) as { readonly [Key in keyof Group]: FlagOf<Group[Key]> };
}

/** From the command line: everything optional, and a setting still a string unless it is a switch or a list. */
export type FlagValues<Flags> = {
  readonly [Key in keyof Flags]?: Flags[Key] extends { readonly parse: (input: string) => infer Value }
    ? Flags[Key] extends { readonly variadic: string }
      ? readonly Value[]
      : Value
    : boolean;
};

/** The flags of every node command. */
export const nodeFlags = {
  ...flagsOf(PLACES),
  config: kinds.text("Configuration file (default /etc/unghost/config.yaml)", "FILE"),
  ...flagsOf(BEHAVIOUR),
};
export type NodeFlags = FlagValues<typeof nodeFlags>;
export const nodeFlagAliases = { o: "output", v: "verbose" } as const;

export const agentFlags = flagsOf({ ...SCANNING, ...SERVICE });
export type AgentFlags = FlagValues<typeof agentFlags>;

const { stateDir, hostRoot, config, output, verbose } = nodeFlags;

/** For commands that read the journal and the quarantine, and do not scan the node. */
export const stateFlags = { stateDir, hostRoot, config, output };

const KEEPER = ["runtimeEndpoint", "cniCacheDir", "multusDir", "hostRoot", "config", "timeout", "verbose"] as const;

/** For the command that syncs files of CNI plugins. */
export const keeperFlags = hidingAllBut(KEEPER);

/** For the command that reads each source, and diagnoses nothing. */
export const sourceFlags = hidingAllBut([...KEEPER, "stateDir", "kubeconfig", "node", "noKube", "output"]);

/** For the agent, which prints no report and whose log has a level, and for the bundle, which has one form. */
export const agentNodeFlags = { ...nodeFlags, output: hidden(output), verbose: hidden(verbose) };

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

export function environmentName(key: string): string {
  return `UNGHOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
