import type { FailureClass } from "./failure-class.ts";
import { chainedPluginBinaryMissing } from "./removal-fails/chained-plugin-binary-missing.ts";
import { cniDaemonSocketDown } from "./removal-fails/cni-daemon-socket-down.ts";
import { cniNotInitialized } from "./removal-fails/cni-not-initialized.ts";
import { delTimeoutKilled } from "./removal-fails/del-timeout-killed.ts";
import { delegateScratchCorrupt } from "./removal-fails/delegate-scratch-corrupt.ts";
import { libcniResultCacheCorrupt } from "./removal-fails/libcni-result-cache-corrupt.ts";
import { multusCacheConsumedRebuiltConfig } from "./removal-fails/multus-cache-consumed-rebuilt-config.ts";
import { multusCacheCorrupt } from "./removal-fails/multus-cache-corrupt.ts";
import { multusDaemonDownOrWedged } from "./removal-fails/multus-daemon-down-or-wedged.ts";
import { multusLossyConflist } from "./removal-fails/multus-lossy-conflist.ts";
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
} from "./removal-fails/plugin-errors.ts";
import {
  containerUnkillable,
  netnsBusy,
  sandboxFilesBusy,
  shimLost,
  vmRuntimeLeft,
} from "./removal-fails/process-errors.ts";

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
