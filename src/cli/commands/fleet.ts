import type { ChosenCluster } from "../../fleet/cluster-access.ts";
import type { FleetOutput } from "../../fleet/output.ts";
import { type Api, openApi } from "../../kube/api.ts";
import { KubeError } from "../../kube/errors.ts";
import { ExitCode, type Io, wantsColour } from "../io.ts";
import { list, noSuchAction, onOff, parseDurationMs, SettingsError, text } from "../settings/kinds.ts";
import { type FlagValues, kebab } from "../settings/table.ts";
import { VERSION } from "../version.ts";
import { anyArguments, defineCommand } from "./index.ts";

/** Named like kubectl's, with the same meaning. */
const fleetFlags = {
  kubeconfig: text("Kubeconfig (default: the files in KUBECONFIG, merged, else ~/.kube/config)", "FILE"),
  context: text("Context of the kubeconfig (default: its current one)", "NAME"),
  as: text("User to impersonate", "USER"),
  asGroup: list("Groups to impersonate", "GROUP"),
  requestTimeout: text("Timeout of all requests together, 0 for none (default 30s)", "DURATION"),
  namespace: text(
    "With why: namespace of the pod (default: that of the context); with heal: only its pods; with scan: as --one-shot-namespace; with doctor: of the agents",
    "NAMESPACE",
  ),
  allNamespaces: onOff("With why: find the pod in any namespace; with heal: pods of all namespaces (the default)"),
  selector: text("With scan and heal: only nodes with these labels", "LABELS"),
  withoutAgents: onOff("With scan and heal: also nodes without a ready agent, by a privileged one-shot pod"),
  image: text("Image of one-shot pods (default: that of this release)", "IMAGE"),
  oneShotNamespace: text("Namespace of one-shot pods (default kube-system)", "NAMESPACE"),
  target: list("With heal: only these: NAMESPACE/POD, sandbox id or finding id (default: all)", "TARGET"),
  allow: list("With heal, on nodes without an agent: also these manual classes, some of which end processes", "CLASS"),
  dryRun: onOff("With heal: show the plans and change nothing"),
  yes: onOff("With heal: do not ask for confirmation"),
  output: text("table, wide, name, json, yaml, jsonpath=... or custom-columns=... (default table)", "FORMAT"),
  port: text("With dashboard: its port on 127.0.0.1 (default 20259; 0 is any free one)", "PORT"),
  noHeaders: onOff("Leave the column headings out"),
  verbose: onOff("Verbose output"),
};
type FleetFlags = FlagValues<typeof fleetFlags>;

export const fleetCommand = defineCommand({
  flags: fleetFlags,
  positional: anyArguments("ARG", "Names of nodes (scan and watch: all by default); with why: one pod"),
  aliases: { A: "allNamespaces", l: "selector", n: "namespace", o: "output", v: "verbose", y: "yes" },
  run: async (flags, io, action = "scan", ...args) => {
    const chosen = ACTIONS.get(action);
    if (chosen === undefined) throw noSuchAction("fleet", action, FLEET_ACTIONS);
    refuseOtherFlags(action, chosen, flags);
    try {
      return await chosen.run(flags, args, io);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      io.stderr(`unghost: ${error.message}\n`);
      return ExitCode.unknown;
    }
  },
});

interface Action {
  readonly run: (flags: FleetFlags, args: readonly string[], io: Io) => Promise<ExitCode>;
  /** Besides those that every action has. */
  readonly flags: readonly (keyof FleetFlags)[];
}

const OF_EVERY_ACTION = ["kubeconfig", "context", "as", "asGroup", "requestTimeout", "verbose"] as const;
const PRINTED = ["output", "noHeaders"] as const;
/** Nodes have no namespace: as with kubectl, -A changes nothing in a list of them. */
const NODES = [...PRINTED, "namespace", "allNamespaces", "selector"] as const;
const ONE_SHOT = ["withoutAgents", "image", "oneShotNamespace"] as const;

const ACTIONS: ReadonlyMap<string, Action> = new Map([
  ["scan", { run: runScan, flags: [...NODES, ...ONE_SHOT] }],
  ["why", { run: runWhy, flags: [...PRINTED, "namespace", "allNamespaces"] }],
  ["heal", { run: runHeal, flags: [...NODES, ...ONE_SHOT, "target", "allow", "dryRun", "yes"] }],
  ["history", { run: runHistory, flags: PRINTED }],
  ["watch", { run: runWatch, flags: PRINTED }],
  ["dashboard", { run: runDashboard, flags: ["port"] }],
  ["doctor", { run: runDoctor, flags: [...PRINTED, "namespace"] }],
]);

/** An ignored flag would be believed: `watch --dry-run` has nothing to try. */
function refuseOtherFlags(action: string, { flags: own }: Action, flags: FleetFlags): void {
  const known: ReadonlySet<string> = new Set([...OF_EVERY_ACTION, ...own]);
  const given = Object.entries(flags).filter(([, value]) => value !== undefined && value !== false);
  for (const [key, value] of given) {
    if (known.has(key) || (Array.isArray(value) && value.length === 0)) continue;
    const having = [...ACTIONS].flatMap(([name, one]) => (one.flags.some((flag) => flag === key) ? [name] : []));
    throw new SettingsError(`unghost fleet ${action} has no flag --${kebab(key)} (for ${having.join(", ")})`);
  }
}

export const FLEET_ACTIONS: readonly string[] = [...ACTIONS.keys()];

async function runScan(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  const { exitCodeOf, printableScan, scanSummary } = await import("../../fleet/scan-report.ts");
  const { readFleet } = await import("../../fleet/fleet-nodes.ts");
  const { formatOutput } = await import("../../fleet/output.ts");
  const output = await outputOf(flags);
  const { noHeaders = false, selector } = flags;
  const fleet = await inCluster(flags, io, async (cluster) => {
    const read = await readFleet(cluster.api, { names, selector }, new Date());
    const { completeFleet } = await import("./fleet-without-agents.ts");
    return await completeFleet(read, flags, cluster.open, io);
  });
  const layout = { width: io.screenColumns ?? Number.POSITIVE_INFINITY, noHeaders, now: new Date() };
  io.stdout(await formatOutput(output, printableScan(fleet, layout), noHeaders));
  for (const problem of fleet.problems) io.stderr(`unghost: ${problem}\n`);
  for (const name of fleet.missing) io.stderr(`unghost: there is no node "${name}"\n`);
  if (output.kind === "table" && !noHeaders) io.stderr(`${scanSummary(fleet)}\n`);
  return exitCodeOf(fleet);
}

async function runWhy(flags: FleetFlags, [target, ...others]: readonly string[], io: Io): Promise<ExitCode> {
  if (target === undefined || others.length > 0)
    throw new SettingsError("unghost fleet why needs one pod: [NAMESPACE/]POD");
  const { readWhyFacts } = await import("../../fleet/why/facts.ts");
  const { findCause } = await import("../../fleet/why/find-cause.ts");
  const { printableWhy, whyExitCode } = await import("../../fleet/why/why-report.ts");
  const { formatOutput } = await import("../../fleet/output.ts");
  const output = await outputOf(flags);
  const [given, name = given] = target.includes("/") ? target.split("/") : [undefined, target];
  if (!name || given === "" || target.split("/").length > 2)
    throw new SettingsError(`"${target}" is no pod: write NAMESPACE/POD`);
  const facts = await inCluster(flags, io, async ({ api, open, namespace: current }) => {
    const isAnywhere = given === undefined && flags.allNamespaces === true;
    const namespace = isAnywhere ? await namespaceOf(api, name) : (given ?? flags.namespace ?? current);
    const read = await readWhyFacts(api, { namespace, name }, new Date());
    // Events are enough for most, and expire after an hour.
    if (findCause(read).code !== "unknown") return read;
    const { withKubeletLog } = await import("../../fleet/why/kubelet-log.ts");
    return await withKubeletLog(read, open);
  });
  const cause = findCause(facts);
  io.stdout(await formatOutput(output, printableWhy(facts, cause, io.columns), flags.noHeaders ?? false));
  return whyExitCode(cause);
}

/** Of the only pod with this name. */
async function namespaceOf(api: Api, name: string): Promise<string> {
  const { namespacesOfPod } = await import("../../fleet/why/facts.ts");
  const [namespace, ...others] = await namespacesOfPod(api, name);
  if (namespace === undefined) throw new KubeError("not-found", `no namespace has a pod "${name}"`);
  if (others.length > 0) {
    const pods = [namespace, ...others].map((one) => `${one}/${name}`).join(", ");
    throw new SettingsError(`pods of several namespaces have this name: choose one of ${pods}`);
  }
  return namespace;
}

async function runHeal(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  const { healFleet } = await import("./fleet-heal.ts");
  const { oneShotPlace } = await import("./fleet-without-agents.ts");
  const { classIds } = await import("../targets.ts");
  const {
    selector,
    target: targets = [],
    allNamespaces = false,
    dryRun = false,
    yes = false,
    noHeaders = false,
  } = flags;
  const namespace = allNamespaces ? undefined : flags.namespace;
  const unusable = targets.find((target) => target.startsWith("-"));
  if (unusable !== undefined) throw new SettingsError(`--target: "${unusable}" is no pod, sandbox or finding`);
  const allow = await classIds(flags.allow ?? []);
  const selection = { targets, namespaces: namespace === undefined ? [] : [namespace] };
  const oneShot = { place: oneShotPlace(flags), always: flags.withoutAgents ?? false };
  const order = { names, selector, selection, allow, oneShot, dryRun, yes, noHeaders, output: await outputOf(flags) };
  return await inCluster(flags, io, (cluster) => healFleet(cluster, order, io));
}

async function runHistory(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  if (names.length === 0) throw new SettingsError("unghost fleet history needs the names of nodes");
  const { printableHistory } = await import("../../fleet/history-report.ts");
  const { readFleet } = await import("../../fleet/fleet-nodes.ts");
  const { formatOutput } = await import("../../fleet/output.ts");
  const output = await outputOf(flags);
  const { noHeaders = false } = flags;
  const fleet = await inCluster(flags, io, ({ api }) => readFleet(api, { names }, new Date()));
  const width = io.screenColumns ?? Number.POSITIVE_INFINITY;
  io.stdout(await formatOutput(output, printableHistory(fleet, width, noHeaders), noHeaders));
  for (const problem of fleet.problems) io.stderr(`unghost: ${problem}\n`);
  const missing = [
    ...fleet.missing.map((name) => `there is no node "${name}"`),
    ...fleet.nodes.flatMap(({ name, report }) => (report === undefined ? [`${name} has no report of an agent`] : [])),
  ];
  for (const problem of missing) io.stderr(`unghost: ${problem}\n`);
  return missing.length > 0 ? ExitCode.unknown : ExitCode.ok;
}

async function runWatch(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  const { watchFleet } = await import("./fleet-watch.ts");
  const { output = "table", noHeaders = false } = flags;
  return await inCluster(flags, io, (cluster) => watchFleet(cluster, { names, output, noHeaders }, io));
}

async function runDashboard(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  if (names.length > 0) throw new SettingsError("unghost fleet dashboard shows all nodes: leave the names out");
  const { serveDashboard } = await import("./fleet-dashboard.ts");
  return await inCluster(flags, io, (cluster) => serveDashboard({ ...cluster, choice: flags, port: flags.port }, io));
}

/** Where the chart puts the agents, and their Leases. */
const AGENTS_NAMESPACE = "unghost";

async function runDoctor(flags: FleetFlags, names: readonly string[], io: Io): Promise<ExitCode> {
  if (names.length > 0) throw new SettingsError("unghost fleet doctor checks the whole cluster: leave the names out");
  const { readDoctorFacts } = await import("../../fleet/doctor/facts.ts");
  const { fleetChecks, fleetRisks } = await import("../../fleet/doctor/checks.ts");
  const { doctorExitCode, printableDoctor } = await import("../../fleet/doctor/report.ts");
  const { formatOutput } = await import("../../fleet/output.ts");
  const output = await outputOf(flags);
  const report = await inCluster(flags, io, async ({ api, access }) => {
    const facts = await readDoctorFacts(api, flags.namespace ?? AGENTS_NAMESPACE, new Date());
    const { length: nodes } = facts.fleet.nodes;
    return {
      version: VERSION,
      server: access.server.host,
      nodes,
      checks: [...fleetChecks(facts, VERSION)],
      risks: [...fleetRisks(facts)],
    };
  });
  const style = { colour: wantsColour(io), columns: io.columns, verbose: flags.verbose ?? false };
  io.stdout(await formatOutput(output, printableDoctor(report, style), flags.noHeaders ?? false));
  return doctorExitCode(report);
}

async function outputOf({ output = "table" }: FleetFlags): Promise<FleetOutput> {
  const { parseOutput } = await import("../../fleet/output.ts");
  const parsed = parseOutput(output);
  if (parsed instanceof Error) throw new SettingsError(parsed.message);
  return parsed;
}

export interface InCluster extends ChosenCluster {
  readonly api: Api;
  /** The timeout of one request. */
  readonly requestMs: number;
  /** Of an answer: this is an operator's machine. */
  readonly limits: { readonly maxBytes: number; readonly maxValues: number };
  /** Another client, with its own timeout. */
  readonly open: (timeoutMs: number) => Api;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** kubectl's 0 is no timeout: a connection that is dead without a sign would then hang until Ctrl-C. */
const LONGEST_TIMEOUT_MS = 60 * 60_000;
/** The server's cache answers with all reports at once: typically 2 KB each, 8 KiB at most. */
const MOST_BYTES = 128 * 1024 * 1024;

async function inCluster<Result>(
  flags: FleetFlags,
  io: Io,
  work: (use: InCluster) => Promise<Result>,
): Promise<Result> {
  const { chooseCluster } = await import("../../fleet/cluster-access.ts");
  const timeoutMs = requestTimeoutMs(flags);
  const chosen = await chooseCluster(flags, io.env);
  // All nodes' reports together have no limit but the pages': this is an operator's machine.
  const limits = { maxBytes: MOST_BYTES, maxValues: Number.POSITIVE_INFINITY };
  const open = (ms: number) => openApi(chosen.access, { ...limits, timeoutMs: ms });
  const api = open(timeoutMs);
  try {
    return await work({ ...chosen, api, open, limits, requestMs: timeoutMs });
  } finally {
    api.close();
  }
}

/** A number alone is seconds, as with kubectl. */
function requestTimeoutMs({ requestTimeout }: FleetFlags): number {
  if (requestTimeout === undefined) return DEFAULT_TIMEOUT_MS;
  if (requestTimeout === "0") return LONGEST_TIMEOUT_MS;
  const ms = parseDurationMs(/^\d+$/.test(requestTimeout) ? `${requestTimeout}s` : requestTimeout);
  if (ms === undefined || ms < 100) {
    throw new SettingsError(`--request-timeout: expected a duration from 100ms on, like 10s, got "${requestTimeout}"`);
  }
  return ms;
}
