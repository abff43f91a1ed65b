import { chainedPluginBinaryMissing } from "./chained-plugin-binary-missing.ts";
import { cniDaemonSocketDown } from "./cni-daemon-socket-down.ts";
import { cniNotInitialized } from "./cni-not-initialized.ts";
import { delegateScratchCorrupt, libcniResultCacheCorrupt, multusCacheCorrupt } from "./corrupt-caches.ts";
import { delTimeoutKilled } from "./del-timeout-killed.ts";
import type { FailureClass } from "./failure-class.ts";
import { multusCacheConsumedRebuiltConfig } from "./multus-cache-consumed-rebuilt-config.ts";
import { multusDaemonDownOrWedged } from "./multus-daemon-down-or-wedged.ts";
import { multusLossyConflist } from "./multus-lossy-conflist.ts";
import {
  calicoNodenameMissing,
  calicoUnauthorized,
  ciliumAgentDown,
  ciliumEmptyNetns,
  cniDelNeedsApiserver,
  cniVersionMismatch,
  devicePluginCacheMissing,
  ipamRecordMissing,
  iptablesPortmap,
} from "./plugin-errors.ts";
import { containerUnkillable, netnsBusy, sandboxFilesBusy, shimLost, vmRuntimeLeft } from "./process-errors.ts";

/** What makes the removal of sandboxes fail, in the order of the codes. */
export const removalFails: readonly FailureClass[] = [
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
];
