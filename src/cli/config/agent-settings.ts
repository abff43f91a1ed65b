import * as v from "valibot";
import { parseListenAddress } from "../../agent/http/listen-address.ts";
import type { AgentPolicy } from "../../agent/policy/agent-policy.ts";
import { durationText } from "../duration.ts";
import { type FlagValues, flagsOf, onOff, text } from "../flag-kinds.ts";
import * as fields from "./fields.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** Listen address and output files of the agent; read once, at its start. */
export interface AgentService {
  /** HOST:PORT. */
  readonly listen: string;
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly tokenFile?: string;
  readonly textfile?: string;
  readonly logLevel: (typeof LOG_LEVELS)[number];
}

/** The source of an effective value. */
export interface EffectiveAgent {
  readonly policy: AgentPolicy;
  readonly service: AgentService;
  readonly observeOnly: boolean;
}

/**
 * One key of the agent's section: the schema of the file, the flag and its environment variable (for single values),
 * `unghost config` and docs/configuration.md are derived from it.
 */
interface AgentSetting {
  readonly schema: v.GenericSchema;
  readonly flag?: object;
  readonly effective: (agent: EffectiveAgent) => unknown;
  readonly range: string;
  readonly meaning: string;
}

export type AgentTable = Readonly<Record<string, AgentSetting>>;

export const SCANNING = {
  scanEvery: {
    ...duration("10ms", "24h"),
    flag: text("Interval of the periodic full scan (default 60s)", "DURATION"),
    effective: ({ policy }) => durationText(policy.scanEveryMs),
    meaning: "Interval of the periodic full scan (fallback for missed events).",
  },
  observeOnly: {
    ...bool(),
    flag: onOff("Show everything, touch nothing"),
    effective: ({ observeOnly }) => observeOnly,
    meaning: "Overrides every other setting: report everything, change nothing.",
  },
} as const satisfies AgentTable;

export const LIMITS = {
  ignoreNamespaces: {
    schema: fields.listOf(fields.namespace()),
    effective: ({ policy }) => policy.ignoredNamespaces,
    range: "names of namespaces",
    meaning: "Nothing of these is touched, and none of their pods is restarted for the sake of others.",
  },
  recreatePods: {
    ...bool(),
    effective: ({ policy }) => policy.recreatePods,
    meaning:
      "Where a pod's name is held by something that no process explains: delete the pod, for its controller to make it again. Never a bare pod, a static one, or one that is left out.",
  },
  keepDurable: {
    ...bool(),
    effective: ({ policy }) => policy.keepDurable,
    meaning:
      "Sync the files of CNI plugins to disk as they are written, so that a power cut leaves none empty: see [durability.md](durability.md).",
  },
  quarantineRetention: {
    schema: v.pipe(
      fields.duration("0s", "3650d"),
      v.check((ms) => ms === 0 || ms >= 3_600_000, "expected 0s (keep forever), or a duration from 1h to 3650d"),
    ),
    effective: ({ policy }) => durationText(policy.quarantineRetentionMs),
    range: "`0s` (forever), or `1h` to `3650d`",
    meaning:
      "How long files and logs stay in quarantine. The agent deletes older entries every hour, `unghost quarantine prune` on demand; entries that an unfinished run or undo needs stay. After that `unghost undo` cannot put the file back.",
  },
  cap: {
    ...wholeNumber(1, 10_000),
    effective: ({ policy }) => policy.cap,
    meaning:
      "The most subjects that one healing touches; the others are in the next one. Files that are only moved aside do not count.",
  },
} as const satisfies AgentTable;

export const FLEET = {
  slots: {
    ...wholeNumber(1, 1000),
    effective: ({ policy }) => policy.fleet.slots,
    meaning: "How many nodes may heal disruptively at once.",
  },
  namespace: {
    schema: fields.namespace(),
    effective: ({ policy }) => policy.fleet.namespace,
    range: "name of a namespace",
    meaning: "Where the Leases of those slots are.",
  },
  breakerShare: {
    schema: fields.share(),
    effective: ({ policy }) => policy.fleet.breakerShare,
    range: "above 0, up to 1",
    meaning: "Share of unhealthy nodes from which on no node heals: the cause is then elsewhere.",
  },
  breakerAtLeast: {
    ...wholeNumber(1, 10_000),
    effective: ({ policy }) => policy.fleet.breakerLeast,
    meaning: "Fewer unhealthy nodes than this never stop the others.",
  },
} as const satisfies AgentTable;

const LISTEN_FORM =
  "expected HOST:PORT, like 127.0.0.1:20258, [::1]:20258, :20258 for every address, or nothing to be reached nowhere";

export const SERVICE = {
  listen: {
    schema: v.pipe(
      v.string(LISTEN_FORM),
      v.check((address) => address === "" || isListenAddress(address), LISTEN_FORM),
    ),
    flag: text("Where metrics and the status page are served (default 127.0.0.1:20258; empty: nowhere)", "HOST:PORT"),
    effective: ({ service }) => service.listen,
    range: "`HOST:PORT`",
    meaning: "Metrics and status page. `:20258` is every address of the node.",
  },
  tlsCert: {
    ...absolutePath(),
    flag: text("Serve over TLS, with this certificate", "FILE"),
    effective: ({ service }) => service.tls?.certFile,
    meaning: "Serve over TLS; goes with `tlsKey`.",
  },
  tlsKey: {
    ...absolutePath(),
    flag: text("The certificate's key", "FILE"),
    effective: ({ service }) => service.tls?.keyFile,
    meaning: "The certificate's key.",
  },
  tokenFile: {
    ...absolutePath(),
    flag: text("Answer only to the bearer token in this file", "FILE"),
    effective: ({ service }) => service.tokenFile,
    meaning: "Answer only to the bearer token in this file.",
  },
  textfile: {
    ...absolutePath(),
    flag: text("Write the metrics to this file, too, for node_exporter's textfile collector", "FILE"),
    effective: ({ service }) => service.textfile,
    meaning: "Write the metrics to this file, too, for node_exporter.",
  },
  logLevel: {
    schema: fields.oneOf(LOG_LEVELS),
    flag: text("debug, info, warn or error (default info)", "LEVEL"),
    effective: ({ service }) => service.logLevel,
    range: LOG_LEVELS.map((level) => `\`${level}\``).join(", "),
    meaning: "",
  },
} as const satisfies AgentTable;

export const agentFlags = { ...flagsOf(SCANNING), ...flagsOf(SERVICE) };

export type AgentFlags = FlagValues<typeof agentFlags>;

export const AGENT_FLAG_KEYS = Object.keys(agentFlags) as readonly (keyof AgentFlags)[];

/** The entries of a section of the file: every key is optional. */
export function schemasOf<Table extends AgentTable>(table: Table) {
  const entries = Object.entries(table).map(([key, { schema }]) => [key, v.nullish(schema)]);
  return Object.fromEntries(entries) as {
    readonly [Key in keyof Table]: v.NullishSchema<Table[Key]["schema"], undefined>;
  };
}

function duration(least: string, most: string) {
  return { schema: fields.duration(least, most), range: `\`${least}\` to \`${most}\`` };
}

function wholeNumber(least: number, most: number) {
  return { schema: fields.wholeNumber(least, most), range: `${least} to ${most}` };
}

function bool() {
  return { schema: fields.bool(), range: "`true`, `false`" };
}

function absolutePath() {
  return { schema: fields.absolutePath(), range: "absolute path" };
}

function isListenAddress(address: string): boolean {
  try {
    return parseListenAddress(address).port >= 0;
  } catch {
    // That message is for the command line; this one has a line number.
    return false;
  }
}
