import { once } from "node:events";
import { chooseCluster } from "../../fleet/cluster-access.ts";
import { readDashboard } from "../../fleet/dashboard/read.ts";
import { openDashboard } from "../../fleet/dashboard/server.ts";
import { openApi } from "../../kube/api.ts";
import { ExitCode, type Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import { VERSION } from "../version.ts";
import type { InCluster } from "./fleet.ts";
import { interruptible } from "./fleet-stop.ts";

const PORT = 20_259;
/** The token of a credential plugin may be valid for some minutes only. */
const CREDENTIALS_MS = 5 * 60_000;

export type Dashboard = Pick<InCluster, "access" | "requestMs" | "limits"> & {
  readonly choice: Parameters<typeof chooseCluster>[0];
  readonly port: string | undefined;
};

/** Serves the dashboard on loopback until Ctrl-C, like `kubectl proxy`. */
export async function serveDashboard(dashboard: Dashboard, io: Io): Promise<ExitCode> {
  const { PAGE } = await import("../../agent/page/gen/dashboard.ts");
  const cluster = dashboard.access.server.host;
  const none = { nodes: [], classes: [], blockedPods: [], heals: [], onHold: [], problems: [] };
  const stop = interruptible();
  const opened = await openDashboard({
    port: portOf(dashboard.port),
    page: PAGE,
    first: { version: VERSION, cluster, ...none },
    read: readerOf(dashboard, io),
  }).catch((error: unknown) => {
    stop.dispose();
    throw new SettingsError(error instanceof Error ? error.message : String(error));
  });
  try {
    io.stdout(`Dashboard of ${cluster}, read-only, for this machine: ${opened.address} (Ctrl-C ends it)\n`);
    if (!stop.signal.aborted) await once(stop.signal, "abort");
    return ExitCode.ok;
  } finally {
    await opened.close();
    stop.dispose();
  }
}

function readerOf({ access: first, requestMs, limits, choice }: Dashboard, io: Io) {
  let access = first;
  let chosenAtMs = performance.now();
  return async () => {
    if (performance.now() - chosenAtMs > CREDENTIALS_MS) {
      ({ access } = await chooseCluster(choice, io.env));
      chosenAtMs = performance.now();
    }
    const api = openApi(access, { ...limits, timeoutMs: requestMs });
    try {
      return await readDashboard(api, new Date());
    } finally {
      api.close();
    }
  };
}

function portOf(given: string | undefined): number {
  if (given === undefined) return PORT;
  if (!/^\d{1,5}$/.test(given) || Number(given) > 65_535)
    throw new SettingsError(`--port: expected a port from 0 to 65535, got "${given}"`);
  return Number(given);
}
