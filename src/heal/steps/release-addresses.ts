import { basename } from "node:path";
import type { Finding } from "../../evidence/finding.ts";
import type { LeaseRef, Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { provePath } from "../../host/trusted-path.ts";
import { parseLease } from "../../snapshot/host-local.ts";
import { findReference, type ReferenceTools } from "../execution/prove.ts";
import { addressesOfReadyPods, type ReadyAddressTools } from "../network/addresses-in-use.ts";
import { type CniFailure, type CniPlace, cniDel, parseCachedNetwork, replayDel } from "../network/cni-exec.ts";
import { incompleteDel } from "../network/incomplete-del.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface ReleaseAddressesTools extends JournalTools, ReferenceTools, ReadyAddressTools {
  readonly hostRoot: string;
  readonly binDirs: readonly string[];
  /** The directories of libcni's results: the runtime's, and multus' own. */
  readonly cniCacheDirs: readonly string[];
  readonly waits: ReferenceTools["waits"] & ReadyAddressTools["waits"];
}

type ReleaseAddresses = Extract<Step, { kind: "release-addresses" }>;

const UNNEEDED: StepResult = { kind: "unneeded" };

/** Releases leaked addresses through the plugins that allocated them, never by touching their files. */
export async function releaseAddresses(
  step: ReleaseAddresses,
  finding: Finding,
  tools: ReleaseAddressesTools,
): Promise<StepResult> {
  const { sandboxId } = step;
  const held = step.leases.filter((lease) => isHeldBy(sandboxId, lease, tools));
  if (held.length === 0) return UNNEEDED;
  const reference = await findReference(sandboxId, tools);
  if (reference !== undefined) return refused({ code: "still-referenced", by: reference });
  const inUse = await addressesOfReadyPods(tools);
  // Before any of them is released, because one call may release all addresses of the sandbox.
  const running = held.find(({ address }) => inUse.has(address));
  if (running !== undefined) return refused({ code: "address-in-use", address: running.address });
  let last = UNNEEDED;
  let incomplete: Pick<Extract<StepResult, { kind: "done" }>, "effect"> = {};
  for (const lease of held) {
    const { network, address } = lease;
    last = await journaled(tools, finding, { kind: "release-address", network, address, owner: sandboxId }, () =>
      release(sandboxId, lease, tools),
    );
    if (last.kind !== "done") return last;
    if (last.effect !== undefined) incomplete = { effect: last.effect };
  }
  return { ...last, ...incomplete };
}

function isHeldBy(sandboxId: string, { path }: LeaseRef, tools: Pick<ReleaseAddressesTools, "hostRoot">): boolean {
  const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
  return file.kind === "content" && parseLease(file.text)?.id === sandboxId;
}

/**
 * The whole chain if its configuration is cached, because other plugins may hold something, too; else only host-local.
 */
async function release(sandboxId: string, lease: LeaseRef, tools: ReleaseAddressesTools): Promise<StepResult> {
  const isReleased = () => !isHeldBy(sandboxId, lease, tools);
  if (isReleased()) return { kind: "done" };
  const place = { hostRoot: tools.hostRoot, binDirs: tools.binDirs, timeoutMs: tools.waits.queryMs };
  const cached = cachedNetwork(sandboxId, lease, tools);
  const replayed = cached && (await replayDel(cached, sandboxId, lease.interfaceName, place));
  const incomplete =
    cached && replayed !== undefined ? { effect: incompleteDel(cached, replayed, tools.hostRoot) } : undefined;
  if (isReleased()) {
    const failedLater = incomplete && `, which then failed: ${replayed}`;
    return { kind: "done", detail: `by DEL with the cached configuration${failedLater ?? ""}`, ...incomplete };
  }

  const failure = await hostLocalDel(sandboxId, lease, place);
  const earlier = incomplete === undefined ? "" : ` (DEL with the cached configuration: ${replayed})`;
  if (isReleased()) return { kind: "done", detail: `by host-local's DEL${earlier}`, ...incomplete };
  const why = `${failure ?? "host-local reported success and kept the address"}${earlier}`;
  return failed({ code: "address-not-released", address: lease.address, why });
}

/** Releases every address of that id and interface under host-local's own lock, for any subnet. */
async function hostLocalDel(sandboxId: string, lease: LeaseRef, place: CniPlace): Promise<CniFailure> {
  const config = {
    cniVersion: "1.0.0",
    name: lease.network,
    ipam: { type: "host-local", subnet: anySubnetOf(lease.address) },
  };
  const { interfaceName } = lease;
  return await cniDel({ plugin: "host-local", containerId: sandboxId, interfaceName, config }, place);
}

function cachedNetwork(
  sandboxId: string,
  lease: LeaseRef,
  tools: ReleaseAddressesTools,
): ReturnType<typeof parseCachedNetwork> {
  for (const cacheDir of tools.cniCacheDirs) {
    const path = `${cacheDir}/results/${basename(lease.network)}-${sandboxId}-${lease.interfaceName}`;
    // It names the plugins that are run as root, and their input: only a file of root is trusted.
    if (provePath(tools.hostRoot, path).kind === "refused") continue;
    const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
    if (file.kind === "content") return parseCachedNetwork(file.text);
  }
  return undefined;
}

function anySubnetOf(address: string): string {
  return address.includes(":") ? "fd00::/64" : "10.0.0.0/24";
}
