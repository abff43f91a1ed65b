import { existsSync, readdirSync, readFileSync } from "node:fs";
import { waitForNetwork } from "../../lab/cni-network.ts";
import { MULTUS_CONF_FILE } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import { GUARD_BIN_DIR } from "../../src/guard/home.ts";
import type { GuardStatus } from "../../src/guard/install/status.ts";
import { unghostIn } from "./healed-node.ts";
import { UNGHOST } from "./unghost.ts";

const STATE = "/var/lib/unghost/cni";
const SETTLE_MS = 60_000;

/** Installs the guard and starts the runtime again, which then searches its directory first. */
export async function installGuard(node: LabNode): Promise<void> {
  await node.check([UNGHOST, "cni", "install", "--yes"]);
  await node.restartRuntime();
}

export async function guardStatus(node: LabNode): Promise<GuardStatus & { readonly code: number | null }> {
  const { stdout, code } = await unghostIn(node, ["cni", "status", "-o", "json"]);
  return { ...(JSON.parse(stdout) as GuardStatus), code };
}

/** Lets multus search the guard's directory for its delegates: a setting of its own. */
export async function guardDelegates(node: LabNode): Promise<void> {
  const conf: object = JSON.parse(readFileSync(node.path(MULTUS_CONF_FILE), "utf8"));
  await node.writeFile(MULTUS_CONF_FILE, JSON.stringify({ ...conf, binDir: GUARD_BIN_DIR }));
  await waitForNetwork(node, `"binDir":"${GUARD_BIN_DIR}"`);
}

export function queued(node: LabNode): readonly string[] {
  return readdirSync(node.path(`${STATE}/queue`)).filter((name) => !name.startsWith("."));
}

export function untilQueueIsEmpty(node: LabNode): Promise<true> {
  return until("the guard has released all that was queued", SETTLE_MS, () => queued(node).length === 0 || undefined);
}

/** Code and result of every decision, oldest first. */
export function decisions(node: LabNode): readonly { readonly code: string; readonly did: string }[] {
  const log = node.path(`${STATE}/log`);
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as { code: string; did: string });
}

/** Addresses that host-local has given out. */
export function addresses(node: LabNode, network = "cbr0"): readonly string[] {
  const dir = node.path(`/var/lib/cni/networks/${network}`);
  return existsSync(dir) ? readdirSync(dir).filter((name) => /^\d/.test(name)) : [];
}
