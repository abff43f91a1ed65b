import { lstatSync, unlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type Finding, type Reason, reason } from "../../evidence/finding.ts";
import type { LeaseRef, StepOf } from "../../evidence/step.ts";
import { failureOf, runChild } from "../../host/child.ts";
import { mapLimited } from "../../host/concurrency.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { describeError } from "../../host/source.ts";
import { systemCallEnv, unlinkCommand, unmountCommand } from "../../host/system-call.ts";
import { property } from "../../host/text.ts";
import { provePath } from "../../host/trusted-path.ts";
import { judgeResult, parseResultName } from "../../node/cni-files.ts";
import { parseLease } from "../../node/host-local.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import { findReference, stillReferenced } from "../proof/prove.ts";
import { sharedCause } from "../proof/storm-brake.ts";
import { canonicalPath } from "../quarantine/file-identity.ts";
import {
  type CachedNetwork,
  type CniFailure,
  type CniPlace,
  cniDel,
  incompleteDel,
  parseCachedNetwork,
  replayDel,
} from "./cni-exec.ts";
import { journaled, type Runs, refused, type StepResult, type StepTools, stepFailed } from "./step-result.ts";

/** Addresses of running pods, which must not be released, whatever an old record contains. */
export async function addressesOfReadyPods(tools: StepTools): Promise<ReadonlySet<string>> {
  const call = { timeoutMs: tools.waits.queryMs };
  const ready = await tools.cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_READY } }, call);
  const statuses = await mapLimited(ready, 8, ({ id }) => tools.cri.podSandboxStatus(id, call));
  return new Set(
    statuses.flatMap(({ status }) => [
      status?.network?.ip ?? "",
      ...(status?.network?.additionalIps ?? []).map(({ ip }) => ip),
    ]),
  );
}

type ReleaseAddresses = StepOf<"release-addresses">;

const UNNEEDED: StepResult = { kind: "unneeded" };

/** Releases leaked addresses through the plugins that allocated them, never by touching their files. */
export async function releaseAddresses(
  step: ReleaseAddresses,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const { sandboxId } = step;
  const held = step.leases.filter((lease) => isHeldBy(sandboxId, lease, tools));
  if (held.length === 0) return UNNEEDED;
  const reference = await findReference(sandboxId, tools);
  if (reference !== undefined) return refused(stillReferenced(reference));
  const inUse = await addressesOfReadyPods(tools);
  // Before any of them is released, because one call may release all addresses of the sandbox.
  const running = held.find(({ address }) => inUse.has(address));
  if (running !== undefined) return refused(addressInUse(running.address));
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

function addressInUse(address: string): Reason {
  return reason("address-in-use", `${address} is the address of a pod that runs`);
}

function isHeldBy(sandboxId: string, { path }: LeaseRef, tools: StepTools): boolean {
  const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
  return file.kind === "content" && parseLease(file.text)?.id === sandboxId;
}

/**
 * The whole chain if its configuration is cached, because other plugins may hold something, too; else only host-local.
 */
async function release(sandboxId: string, lease: LeaseRef, tools: StepTools): Promise<StepResult> {
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
  return stepFailed(reason("address-not-released", `${lease.address} could not be released: ${why}`));
}

/** Releases every address of that id and interface under host-local's own lock, for any subnet. */
async function hostLocalDel(sandboxId: string, lease: LeaseRef, place: CniPlace): Promise<CniFailure> {
  const config = {
    cniVersion: "1.0.0",
    name: lease.network,
    ipam: { type: "host-local", subnet: anySubnetOf(lease.address), dataDir: dirname(dirname(lease.path)) },
  };
  const { interfaceName } = lease;
  return await cniDel({ plugin: "host-local", containerId: sandboxId, interfaceName, config }, place);
}

function cachedNetwork(sandboxId: string, lease: LeaseRef, tools: StepTools): ReturnType<typeof parseCachedNetwork> {
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

type ReplayDel = StepOf<"replay-del">;

/** They hold nothing themselves: multus' delegates have their own records, and loopback's namespace is gone. */
const HOLD_NOTHING: ReadonlySet<unknown> = new Set(["multus", "multus-shim", "loopback"]);

/**
 * Replays the DEL that never reached a plugin, from its only record. A plugin whose daemon is unreachable keeps the
 * record for a retry; one that fails permanently does not.
 */
export async function replayCachedDel(step: ReplayDel, finding: Finding, tools: StepTools): Promise<StepResult> {
  const { sandboxId } = step;
  const name = parseResultName(basename(step.path));
  const cached = cachedResult(step, tools);
  if (name === undefined || cached === undefined) return { kind: "unneeded" };
  if (cached.plugins.every((plugin) => HOLD_NOTHING.has(property(plugin, "type")))) return { kind: "unneeded" };
  const reference = await findReference(sandboxId, tools);
  if (reference !== undefined) return refused(stillReferenced(reference));
  const inUse = await addressesOfReadyPods(tools);
  const taken = cached.addresses.find((address) => inUse.has(address.split("/")[0] ?? ""));
  if (taken !== undefined) return refused(addressInUse(taken));
  const path = canonicalPath(tools.hostRoot, step.path);
  return await journaled(tools, finding, { kind: "replay-del", path, sandboxId }, async () => {
    const place = { hostRoot: tools.hostRoot, binDirs: tools.binDirs, timeoutMs: tools.waits.queryMs };
    const failure = await replayDel(cached, sandboxId, name.interfaceName, place);
    if (failure === undefined) return { kind: "done" };
    if (sharedCause(failure) !== undefined) {
      return stepFailed(
        reason("del-undelivered", `DEL of ${cached.name} did not reach its plugin: ${failure}`),
        failure,
      );
    }
    const effect = incompleteDel(cached, failure, tools.hostRoot);
    return { kind: "done", detail: `DEL was refused: ${failure}`, effect };
  });
}

type Cached = CachedNetwork & { readonly addresses: readonly string[] };

function cachedResult({ path, sandboxId }: ReplayDel, { hostRoot }: StepTools): Cached | undefined {
  const file = readRegularFile(resolveOnHost(hostRoot, path, "keep"));
  if (file.kind !== "content") return undefined;
  const judged = judgeResult(file.text, { sandboxId });
  if (judged.health !== "ok") return undefined;
  const network = parseCachedNetwork(file.text);
  return network && { ...network, addresses: judged.addresses ?? [] };
}

/** Unmounts and unlinks a network namespace without a record and without a process. */
export async function removeNetns(
  { path, inode }: StepOf<"remove-netns">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const opened = resolveOnHost(tools.hostRoot, path, "keep");
  const stats = lstatSync(opened, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { kind: "unneeded" };
  if (!stats.isFile()) return refused(reason("not-a-namespace", `${path} is not a namespace file`));
  if (inode !== undefined && stats.ino !== inode)
    return refused(reason("namespace-changed", `${path} is another namespace by now`));
  const objection = await usersOf(path, stats.ino, tools);
  if (objection !== undefined) return refused(objection);
  return await journaled(tools, finding, { kind: "remove-netns", path }, async () => {
    const onHost = canonicalPath(tools.hostRoot, path);
    if (inode !== undefined) {
      const error = await errorOf(unmountCommand(tools.hostRoot, onHost), tools);
      if (error !== undefined)
        return stepFailed(reason("unmount-failed", `${path} could not be unmounted: umount ${error}`));
    }
    const error = await unlink(onHost, tools);
    return error === undefined
      ? { kind: "done" }
      : stepFailed(reason("unlink-failed", `${path} could not be removed: ${error}`));
  });
}

async function unlink(path: string, tools: StepTools): Promise<string | undefined> {
  if (tools.hostRoot !== "/") return await errorOf(unlinkCommand(tools.hostRoot, path), tools);
  try {
    unlinkSync(path);
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

async function errorOf(command: readonly string[], { waits }: StepTools): Promise<string | undefined> {
  const result = await runChild(command, { timeoutMs: waits.queryMs, env: systemCallEnv() });
  const failure = failureOf(result);
  return failure === undefined ? undefined : `${failure}. ${result.stderr.trim()}`;
}

const USERS_UNREAD = reason(
  "namespace-users-unread",
  "its users are unknown: not every process or record could be read",
);

async function usersOf(path: string, inode: bigint, { facts }: StepTools): Promise<Reason | undefined> {
  const [processes, containerd] = await Promise.all([facts.processes(), facts.containerd()]);
  if (processes.status !== "read" || containerd === undefined) return USERS_UNREAD;
  if (processes.value.netnsUnread !== undefined) return USERS_UNREAD;
  if (processes.value.netnsInodes.has(inode)) return reason("namespace-in-use", "a process lives in it");
  const records = [...containerd.records, ...containerd.sandboxes];
  const refers = records.some(({ sandbox }) => basename(sandbox?.netnsPath ?? "") === basename(path));
  return refers ? reason("namespace-referenced", "a sandbox record refers to it") : undefined;
}

export const NETWORK_STEPS = {
  "release-addresses": releaseAddresses,
  "replay-del": replayCachedDel,
  "remove-netns": removeNetns,
} satisfies Runs<"networks">;
