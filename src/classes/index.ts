import { clockStepContainerRestartcount } from "./creation-blocked/clock-step-container-restartcount.ts";
import { clockStepSandboxAttemptReuse } from "./creation-blocked/clock-step-sandbox-attempt-reuse.ts";
import { containerCreateStatHang } from "./creation-blocked/container-create-stat-hang.ts";
import { containerInvisibleAfterEnospcRestart } from "./creation-blocked/container-invisible-after-enospc-restart.ts";
import { containerNameHeldBySlowCreate } from "./creation-blocked/container-name-held-by-slow-create.ts";
import { eventedPlegStaleStatus } from "./creation-blocked/evented-pleg-stale-status.ts";
import { failedRollbackUnknownSandbox } from "./creation-blocked/failed-rollback-unknown-sandbox.ts";
import { kernelNetnsHang } from "./creation-blocked/kernel-netns-hang.ts";
import { sandboxNameHeldByInflightRun } from "./creation-blocked/sandbox-name-held-by-inflight-run.ts";
import { zeroCreatedatRecord } from "./creation-blocked/zero-createdat-record.ts";
import type { FailureClass } from "./failure-class.ts";
import { chainedPluginIpLeak } from "./leaks/chained-plugin-ip-leak.ts";
import { cniCacheFilesOrphaned } from "./leaks/cni-cache-files-orphaned.ts";
import { delNeverExecuted } from "./leaks/del-never-executed.ts";
import { delSwallowed } from "./leaks/del-swallowed.ts";
import { hostlocalEmptyIpFile } from "./leaks/hostlocal-empty-ip-file.ts";
import { hostlocalIpLeakAfterReboot } from "./leaks/hostlocal-ip-leak-after-reboot.ts";
import { netnsAndVethLeak } from "./leaks/netns-and-veth-leak.ts";
import { recordLeakAfterLateFailure } from "./leaks/record-leak-after-late-failure.ts";
import { sandboxListOverflow } from "./leaks/sandbox-list-overflow.ts";
import { shimLeak } from "./leaks/shim-leak.ts";
import { snapshotLeaseLeak } from "./leaks/snapshot-lease-leak.ts";
import { staleHostportRules } from "./leaks/stale-hostport-rules.ts";
import { crashLoopDrivenByGhost } from "./left-behind/crash-loop-driven-by-ghost.ts";
import { deadAfterCrash } from "./left-behind/dead-after-crash.ts";
import { leftoverContainer } from "./left-behind/leftover-container.ts";
import { podGone } from "./left-behind/pod-gone.ts";
import { inflightClearing } from "./not-failures/inflight-clearing.ts";
import { retainedNotready } from "./not-failures/retained-notready.ts";
import { sandboxChangedAlone } from "./not-failures/sandbox-changed-alone.ts";
import { secondIdempotentDel } from "./not-failures/second-idempotent-del.ts";
import { crioAlreadyExists } from "./other-runtimes/crio-already-exists.ts";
import { crioHalfRemoved } from "./other-runtimes/crio-half-removed.ts";
import { crioNameReserved } from "./other-runtimes/crio-name-reserved.ts";
import { dockerNameConflict } from "./other-runtimes/docker-name-conflict.ts";
import { isuladNameConflict } from "./other-runtimes/isulad-name-conflict.ts";
import { staleProcNetns } from "./other-runtimes/stale-proc-netns.ts";
import { calicoNodenameMissing } from "./removal-fails/calico-nodename-missing.ts";
import { calicoUnauthorized } from "./removal-fails/calico-unauthorized.ts";
import { chainedPluginBinaryMissing } from "./removal-fails/chained-plugin-binary-missing.ts";
import { ciliumAgentDown } from "./removal-fails/cilium-agent-down.ts";
import { ciliumEmptyNetns } from "./removal-fails/cilium-empty-netns.ts";
import { cniDaemonSocketDown } from "./removal-fails/cni-daemon-socket-down.ts";
import { cniDelNeedsApiserver } from "./removal-fails/cni-del-needs-apiserver.ts";
import { cniNotInitialized } from "./removal-fails/cni-not-initialized.ts";
import { cniVersionMismatch } from "./removal-fails/cni-version-mismatch.ts";
import { containerUnkillable } from "./removal-fails/container-unkillable.ts";
import { delTimeoutKilled } from "./removal-fails/del-timeout-killed.ts";
import { delegateScratchCorrupt } from "./removal-fails/delegate-scratch-corrupt.ts";
import { devicePluginCacheMissing } from "./removal-fails/device-plugin-cache-missing.ts";
import { ipamRecordMissing } from "./removal-fails/ipam-record-missing.ts";
import { iptablesPortmap } from "./removal-fails/iptables-portmap.ts";
import { libcniResultCacheCorrupt } from "./removal-fails/libcni-result-cache-corrupt.ts";
import { multusCacheConsumedRebuiltConfig } from "./removal-fails/multus-cache-consumed-rebuilt-config.ts";
import { multusCacheCorrupt } from "./removal-fails/multus-cache-corrupt.ts";
import { multusDaemonDownOrWedged } from "./removal-fails/multus-daemon-down-or-wedged.ts";
import { multusLossyConflist } from "./removal-fails/multus-lossy-conflist.ts";
import { netnsBusy } from "./removal-fails/netns-busy.ts";
import { sandboxFilesBusy } from "./removal-fails/sandbox-files-busy.ts";
import { shimLost } from "./removal-fails/shim-lost.ts";
import { vmRuntimeLeft } from "./removal-fails/vm-runtime-left.ts";
import { boltCorruption } from "./runtime-down/bolt-corruption.ts";
import { cniLockWedge } from "./runtime-down/cni-lock-wedge.ts";
import { recoverDuplicateContainerName } from "./runtime-down/recover-duplicate-container-name.ts";
import { recoverDuplicateSandboxName } from "./runtime-down/recover-duplicate-sandbox-name.ts";
import { recoverMissingMetadata } from "./runtime-down/recover-missing-metadata.ts";
import { volumeAttachmentStuck } from "./storage/volume-attachment-stuck.ts";

/** Every failure class, in the order of its codes: creation blocked, removal fails, leaks, runtime down, left behind, storage, other runtimes, not failures. */
export const classes: readonly FailureClass[] = [
  sandboxNameHeldByInflightRun,
  containerNameHeldBySlowCreate,
  clockStepSandboxAttemptReuse,
  clockStepContainerRestartcount,
  failedRollbackUnknownSandbox,
  containerInvisibleAfterEnospcRestart,
  kernelNetnsHang,
  containerCreateStatHang,
  eventedPlegStaleStatus,
  zeroCreatedatRecord,
  libcniResultCacheCorrupt,
  multusCacheCorrupt,
  multusCacheConsumedRebuiltConfig,
  multusLossyConflist,
  multusDaemonDownOrWedged,
  cniNotInitialized,
  chainedPluginBinaryMissing,
  calicoUnauthorized,
  cniDelNeedsApiserver,
  calicoNodenameMissing,
  ciliumAgentDown,
  ciliumEmptyNetns,
  cniDaemonSocketDown,
  delTimeoutKilled,
  devicePluginCacheMissing,
  ipamRecordMissing,
  iptablesPortmap,
  cniVersionMismatch,
  netnsBusy,
  containerUnkillable,
  shimLost,
  delegateScratchCorrupt,
  sandboxFilesBusy,
  vmRuntimeLeft,
  hostlocalIpLeakAfterReboot,
  hostlocalEmptyIpFile,
  chainedPluginIpLeak,
  delNeverExecuted,
  delSwallowed,
  cniCacheFilesOrphaned,
  netnsAndVethLeak,
  shimLeak,
  sandboxListOverflow,
  snapshotLeaseLeak,
  staleHostportRules,
  recordLeakAfterLateFailure,
  recoverDuplicateSandboxName,
  recoverDuplicateContainerName,
  recoverMissingMetadata,
  boltCorruption,
  cniLockWedge,
  deadAfterCrash,
  leftoverContainer,
  podGone,
  crashLoopDrivenByGhost,
  volumeAttachmentStuck,
  crioNameReserved,
  crioAlreadyExists,
  staleProcNetns,
  dockerNameConflict,
  isuladNameConflict,
  crioHalfRemoved,
  retainedNotready,
  secondIdempotentDel,
  inflightClearing,
  sandboxChangedAlone,
];

const byId: ReadonlyMap<string, FailureClass> = new Map(classes.map((one) => [one.id, one]));

export function classById(id: string): FailureClass | undefined {
  return byId.get(id);
}
