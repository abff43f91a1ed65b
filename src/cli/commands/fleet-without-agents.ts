import type { Fleet } from "../../fleet/fleet-nodes.ts";
import type { OpenApi } from "../../fleet/one-shot/run.ts";
import { nodeList } from "../../fleet/scan-report.ts";
import { isWithoutAgent, type OneShotPlace, scanWithoutAgents } from "../../fleet/without-agents.ts";
import { shellWord } from "../../host/text.ts";
import { count } from "../../report/words.ts";
import type { Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import { IMAGE } from "../version.ts";

export interface OneShotFlags {
  readonly withoutAgents?: boolean;
  readonly image?: string;
  readonly namespace?: string;
  readonly oneShotNamespace?: string;
}

/** The only one that clusters with PodSecurity exempt by default. */
const NAMESPACE = "kube-system";
/** A privileged pod on more nodes than this is asked for in parts. */
const MOST_NODES = 100;

export function oneShotPlace({ image = IMAGE, oneShotNamespace = NAMESPACE }: OneShotFlags): OneShotPlace {
  return { image, namespace: oneShotNamespace };
}

/** Scans nodes without an agent by one-shot pods where that was asked for, and otherwise prints how to. */
export async function completeFleet(fleet: Fleet, flags: OneShotFlags, open: OpenApi, io: Io): Promise<Fleet> {
  const names = fleet.nodes.filter(isWithoutAgent).map(({ name }) => name);
  if (names.length === 0) return fleet;
  if (!flags.withoutAgents) {
    const which = names.length <= MOST_NODES ? names.map(shellWord).join(" ") : "-l LABELS";
    io.stderr(`No ready agent on ${count(names.length, "node")}: ${nodeList(names)}. `);
    io.stderr(`To scan by a privileged one-shot pod: unghost fleet scan --without-agents ${which}\n`);
    return fleet;
  }
  if (names.length > MOST_NODES) {
    throw new SettingsError(
      `--without-agents would start a privileged pod on ${names.length} nodes: name ${MOST_NODES} at most, or choose them with -l`,
    );
  }
  const place = oneShotPlace({ ...flags, oneShotNamespace: flags.oneShotNamespace ?? flags.namespace });
  const warn = (message: string) => io.stderr(`unghost: ${message}\n`);
  const scanned = await withInterrupt((signal) => {
    const started = (node: string) =>
      io.stderr(`${node}: scanning by a privileged pod in ${place.namespace}, removed afterwards\n`);
    return scanWithoutAgents(open, fleet, { place, started, signal, warn });
  });
  for (const { name, oneShot } of scanned.nodes) {
    if (typeof oneShot === "object") warn(`${name}: ${oneShot.message}. ${oneShot.next}`);
  }
  return scanned;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The first signal ends the work, which then removes its pods; a second one ends the process as usual. */
export async function withInterrupt<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  for (const signal of SIGNALS) process.once(signal, onSignal);
  try {
    return await work(stop.signal);
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}
