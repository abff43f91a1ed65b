import { type Asking, askNode, type HealRequest } from "../../fleet/ask-node.ts";
import { type Fleet, type FleetNode, readFleet } from "../../fleet/fleet-nodes.ts";
import { podHealer } from "../../fleet/heal-by-pod.ts";
import {
  healExitCode,
  type NodeResult,
  needsPolicy,
  notNamed,
  printableHeal,
  resultLines,
  unansweredResult,
} from "../../fleet/heal-report.ts";
import { type FleetOutput, formatOutput } from "../../fleet/output.ts";
import { worstFirst } from "../../fleet/scan-report.ts";
import { isWithoutAgent, type OneShotPlace } from "../../fleet/without-agents.ts";
import { printable } from "../../host/text.ts";
import { KubeError, orKubeError } from "../../kube/errors.ts";
import type { HealAnswer } from "../../kube/ghost-heal.ts";
import { count, sentence } from "../../report/words.ts";
import { askYesNo, ExitCode, type Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import type { InCluster } from "./fleet.ts";
import { interruptible } from "./fleet-stop.ts";

export interface FleetHealOrder {
  readonly names: readonly string[];
  readonly selector: string | undefined;
  readonly selection: Pick<HealRequest, "targets" | "namespaces">;
  /** Manual classes, on nodes without an agent. */
  readonly allow: readonly string[];
  /** Where pods run on nodes without an agent; `always`: on nodes whose agent is not ready, and on those that a label chose, too. */
  readonly oneShot: { readonly place: OneShotPlace; readonly always: boolean };
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly output: FleetOutput;
  readonly noHeaders: boolean;
}

/** Asks one node after the other: shows its plan, asks on a terminal, lets its agent heal, prints its answer. */
export async function healFleet(
  { api, access, requestMs, open }: InCluster,
  order: FleetHealOrder,
  io: Io,
): Promise<ExitCode> {
  const { names, selector, output, dryRun, yes } = order;
  if (names.length === 0 && selector === undefined)
    throw new SettingsError("unghost fleet heal needs the names of nodes, or -l LABELS");
  const isTable = output.kind === "table" || output.kind === "wide";
  if (!isTable && !dryRun && !yes)
    throw new SettingsError("-o is for programs: add --yes, or --dry-run to see the plans");
  const fleet = await readFleet(api, { names, selector }, new Date());
  for (const problem of fleet.problems) io.stderr(`unghost: ${problem}\n`);
  for (const name of fleet.missing) io.stderr(`unghost: there is no node "${name}"\n`);
  // Ctrl-C withdraws what no agent has read, and shows what is in flight.
  const stop = interruptible(() => io.stderr("\nStopping: no further node is asked. Press Ctrl-C again to abort.\n"));
  const asking = { access, requestMs, stop: stop.signal };
  const results: NodeResult[] = [];
  try {
    for (const node of wanted(fleet, names)) {
      const show = (lines: readonly string[]) => {
        if (isTable) io.stdout(lines.map((line) => `${line.trimEnd()}\n`).join(""));
      };
      const result = await healNode(node, order, { asking, open, show, io });
      results.push(result);
      show(resultLines(result, io.columns));
      if (stop.signal.aborted || endsAll(result)) break;
    }
  } finally {
    stop.dispose();
  }
  if (!isTable) io.stdout(await formatOutput(output, printableHeal(results, io.columns), order.noHeaders));
  const left = wanted(fleet, names).length - results.length;
  if (left > 0) io.stderr(`unghost: ${count(left, "node")} not asked\n`);
  if (results.length === 0 && fleet.missing.length === 0 && isTable) io.stdout("Nothing to heal.\n");
  const isNothing = results.length === 0 && fleet.missing.length === 0;
  return isNothing ? ExitCode.ok : (Math.max(healExitCode(results), fleet.missing.length > 0 ? 2 : 0) as ExitCode);
}

/** Named nodes are always asked; of selected ones those that may need it. */
function wanted({ nodes }: Fleet, names: readonly string[]): readonly FleetNode[] {
  return worstFirst(names.length > 0 ? nodes : nodes.filter(({ verdict }) => verdict !== "healthy"));
}

/** The breaker is about the fleet, not about one node. */
function endsAll({ answer }: NodeResult): boolean {
  return answer?.code === "breaker";
}

interface Surroundings {
  readonly asking: Asking;
  readonly open: InCluster["open"];
  readonly show: (lines: readonly string[]) => void;
  readonly io: Io;
}

/** Asks one node, by its agent or by a pod: for its plan, then to heal by the plan that was shown. */
type Ask = (request: Pick<HealRequest, "dryRun" | "planDigest">) => Promise<NodeResult>;

async function healNode(
  node: FleetNode,
  order: FleetHealOrder,
  { show, io, ...surroundings }: Surroundings,
): Promise<NodeResult> {
  const { dryRun, yes } = order;
  const { name } = node;
  const ask = askerFor(node, order, { show, io, ...surroundings });
  if (ask === undefined) return notNamed(name);
  const planned = await ask({ dryRun: true, planDigest: undefined });
  if (planned.outcome !== "planned") return planned;
  show(planLines(planned.answer));
  const { totals, planDigest, verdict } = planned.answer ?? {};
  if (dryRun) return planned;
  if (totals?.planned === 0) return { ...planned, outcome: verdict === "healthy" ? "healed" : "incomplete" };
  if (!yes) {
    const question = `Heal ${count(totals?.planned ?? 0, "finding")} on ${printable(name)}?`;
    const isTerminal = io.stdinIsTerminal && io.stdoutIsTerminal;
    const confirmed = isTerminal ? await askYesNo(question, io) : "no-terminal";
    if (confirmed === "no-terminal") {
      const message = "There is no terminal to confirm on.";
      return { node: name, outcome: "declined", message, next: "Add --yes, or --dry-run to see the plan." };
    }
    if (confirmed === "no") return { node: name, outcome: "declined" };
  }
  return await ask({ dryRun: false, planDigest });
}

function askerFor(node: FleetNode, order: FleetHealOrder, { asking, open, io }: Surroundings): Ask | undefined {
  const { name } = node;
  const { selection, allow, oneShot, names } = order;
  if (!(oneShot.always ? isWithoutAgent(node) : node.agent === "none")) {
    if (allow.length > 0) return () => Promise.resolve(needsPolicy(name));
    return (request) => askAgent(node, { ...selection, ...request, columns: widthFor(io.columns) }, asking);
  }
  if (!oneShot.always && !names.includes(name)) return undefined;
  const line = (text: string) => io.stderr(`${name}: ${text}\n`);
  const heal = podHealer({
    open,
    node: name,
    place: oneShot.place,
    selection,
    allow,
    columns: io.columns,
    signal: asking.stop,
    warn: (message) => io.stderr(`unghost: ${message}\n`),
    line,
  });
  return (request) => {
    const what = request.dryRun ? "making the plan" : "healing";
    line(`${what} by a privileged pod in ${oneShot.place.namespace}, removed afterwards`);
    return heal(request);
  };
}

async function askAgent(node: FleetNode, request: HealRequest, asking: Asking): Promise<NodeResult> {
  const { name } = node;
  const reply = await orKubeError(askNode(name, request, asking));
  if (reply instanceof KubeError) return { node: name, outcome: "no-answer", message: sentence(reply.message) };
  if (reply.kind !== "answered") return unansweredResult(node, reply);
  return { node: name, outcome: reply.answer.outcome, request: reply.request, answer: reply.answer };
}

/** The agent may be of another version, or not what it should be: its text is no terminal sequence. */
function planLines(answer: HealAnswer | undefined): readonly string[] {
  return (answer?.plan ?? "").trimEnd().split("\n").map(printable);
}

/** As the custom resource allows. */
function widthFor(columns: number): number {
  return Math.min(Math.max(columns, 40), 400);
}
