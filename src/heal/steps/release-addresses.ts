import { basename } from "node:path";
import type { Finding } from "../../classes/finding.ts";
import type { LeaseRef, Step } from "../../classes/step.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import { mapLimited } from "../../runtime/map-limited.ts";
import { parseLease } from "../../snapshot/host-local.ts";
import { resolveOnHost } from "../../snapshot/host-paths.ts";
import { readRegularFile } from "../../snapshot/safe-fs.ts";
import { cniDel } from "../cni-exec.ts";
import { parseCachedNetwork, replayDel } from "../cni-replay.ts";
import type { NodeTools } from "../node-tools.ts";
import { whoKnows } from "../prove.ts";
import { journaled, type StepResult } from "../step-result.ts";

type ReleaseAddresses = Extract<Step, { kind: "release-addresses" }>;

/** Gives leaked addresses back through the plugins that took them, never by touching their files. */
export async function releaseAddresses(
  step: ReleaseAddresses,
  finding: Finding,
  tools: NodeTools,
): Promise<StepResult> {
  const { sandboxId } = step;
  const held = step.leases.filter((lease) => isHeldBy(sandboxId, lease, tools));
  if (held.length === 0) return { kind: "unneeded" };
  const knower = await whoKnows(sandboxId, tools);
  if (knower !== undefined) return { kind: "refused", reason: `not left behind: ${knower}` };
  const inUse = await addressesOfReadyPods(tools);
  let last: StepResult = { kind: "unneeded" };
  for (const lease of held) {
    if (inUse.has(lease.address)) {
      return { kind: "refused", reason: `${lease.address} is the address of a pod that runs` };
    }
    const { network, address } = lease;
    last = await journaled(tools, finding, { kind: "release-address", network, address, owner: sandboxId }, () =>
      release(sandboxId, lease, tools),
    );
    if (last.kind !== "done") return last;
  }
  return last;
}

function isHeldBy(sandboxId: string, { path }: LeaseRef, tools: NodeTools): boolean {
  const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
  return file.kind === "content" && parseLease(file.text)?.id === sandboxId;
}

async function addressesOfReadyPods(tools: NodeTools): Promise<ReadonlySet<string>> {
  const call = { timeoutMs: tools.waits.lookMs };
  const ready = await tools.cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_READY } }, call);
  const statuses = await mapLimited(ready, 8, ({ id }) => tools.cri.podSandboxStatus(id, call));
  return new Set(
    statuses.flatMap(({ status }) => [
      status?.network?.ip ?? "",
      ...(status?.network?.additionalIps ?? []).map(({ ip }) => ip),
    ]),
  );
}

/**
 * The whole chain where its configuration is cached, because other plugins may hold something, too; then host-local
 * alone, which frees every address of that id and interface under its own lock, whatever subnet it is told.
 */
async function release(sandboxId: string, lease: LeaseRef, tools: NodeTools): Promise<StepResult> {
  const place = { hostRoot: tools.hostRoot, binDirs: tools.binDirs, timeoutMs: tools.waits.lookMs };
  const cached = cachedNetwork(sandboxId, lease, tools);
  const replayed = cached === undefined ? "not cached" : await replayDel(cached, sandboxId, lease.interfaceName, place);
  if (!isHeldBy(sandboxId, lease, tools)) return { kind: "done" };
  const config = {
    cniVersion: "1.0.0",
    name: lease.network,
    ipam: { type: "host-local", subnet: anySubnetOf(lease.address) },
  };
  const call = { plugin: "host-local", containerId: sandboxId, interfaceName: lease.interfaceName, config };
  const failure = await cniDel(call, place);
  if (!isHeldBy(sandboxId, lease, tools)) return { kind: "done" };
  const words = failure ?? "host-local reported success and kept the address";
  return {
    kind: "failed",
    reason: `${lease.address} could not be released: ${words}${cached ? ` (${replayed})` : ""}`,
  };
}

function cachedNetwork(sandboxId: string, lease: LeaseRef, tools: NodeTools): ReturnType<typeof parseCachedNetwork> {
  for (const cacheDir of tools.cniCacheDirs) {
    const name = `${basename(lease.network)}-${sandboxId}-${lease.interfaceName}`;
    const file = readRegularFile(resolveOnHost(tools.hostRoot, `${cacheDir}/results/${name}`, "keep"));
    if (file.kind === "content") return parseCachedNetwork(file.text);
  }
  return undefined;
}

function anySubnetOf(address: string): string {
  return address.includes(":") ? "fd00::/64" : "10.0.0.0/24";
}
