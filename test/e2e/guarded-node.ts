import { existsSync, readdirSync, readFileSync } from "node:fs";
import { waitForNetwork } from "../../lab/cni-network.ts";
import { MULTUS_CONF_FILE } from "../../lab/multus.ts";
import { DAEMON_CONF, DAEMON_CONF_FILE, killMultusDaemon, startMultusDaemon } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import { GUARD_BIN_DIR, GUARD_PROGRAM, GUARD_STATE_DIR as STATE } from "../../src/guard/home.ts";
import type { GuardStatus } from "../../src/guard/install/status.ts";
import { unghostIn } from "./healed-node.ts";
import { UNGHOST } from "./unghost.ts";

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

/** The same for the daemon of thick multus, which reads its configuration at its start. */
export async function guardThickDelegates(node: LabNode): Promise<void> {
  await node.writeFile(DAEMON_CONF_FILE, JSON.stringify({ ...DAEMON_CONF, binDir: GUARD_BIN_DIR }));
  await killMultusDaemon(node);
  await startMultusDaemon(node);
}

export function queued(node: LabNode): readonly string[] {
  return readdirSync(node.path(`${STATE}/queue`)).filter((name) => !name.startsWith("."));
}

export function untilQueueIsEmpty(node: LabNode): Promise<true> {
  return until("the guard has released all that was queued", SETTLE_MS, () => queued(node).length === 0 || undefined);
}

/** The decision is written after the queue's file is removed. */
export async function untilReplayed(node: LabNode): Promise<void> {
  await untilQueueIsEmpty(node);
  const isWritten = () => decisions(node).at(-1)?.code === "replayed" || undefined;
  await until("the guard has written that it repeated the DEL", SETTLE_MS, isWritten);
}

/**
 * What the agent does at intervals, more than ten minutes later: the records are older, and so is the boot. No clock of
 * the machine is touched.
 */
export async function keepLater(node: LabNode): Promise<void> {
  await node.check(["sh", "-c", `find ${STATE}/attachments -type f -exec touch -d '-11 minutes' {} +`]);
  const keep = [GUARD_PROGRAM, "cni-call", "keep", STATE];
  await node.check(["unshare", "--time", "--boottime", "1200", "--fork", "--", ...keep]);
}

interface LoggedDecision {
  readonly code: string;
  readonly did: string;
  readonly plugin: string;
}

/** Every decision, oldest first. */
export function decisions(node: LabNode): readonly LoggedDecision[] {
  const log = node.path(`${STATE}/log`);
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as LoggedDecision);
}

/** Addresses that host-local has given out. */
export function addresses(node: LabNode, network = "cbr0"): readonly string[] {
  const dir = node.path(`/var/lib/cni/networks/${network}`);
  return existsSync(dir) ? readdirSync(dir).filter((name) => /^\d/.test(name)) : [];
}
