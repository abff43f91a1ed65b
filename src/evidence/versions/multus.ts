import type { MultusConfig } from "../../snapshot/types/cni.ts";

/** Multus' behaviour by release; a node does not show its version, so these are printed and not compared. */
export const MULTUS = {
  /** Up to this version an unparsable cache fails every DEL; later ones succeed without calling a delegate. */
  corruptCacheFailsUpTo: "3.9",
  /** Since this major version an unparsable cache makes DEL succeed, which the marker relies on. */
  markerReadFrom: 4,
  /** Since this version the shim of the thick plugin answers DEL with success, whatever the daemon reports. */
  shimSwallowsDelErrorsFrom: "4.0.2",
  /** In this range, settings of a delegate's file-based configuration are stripped on DEL. */
  lossyConflist: { from: "4.2.1", to: "4.3.0" },
} as const;

/**
 * Differences between thin and thick multus. Both keep their caches in the same places: `<cniDir>/<sandbox id>` for the
 * delegates, `<cniDir>/results` for libcni's cache of each of them.
 */
interface MultusVariant {
  readonly name: "thin" | "thick";
  /**
   * Whether the runtime gets the error of a delegate's DEL, and so requires its success. The thick shim answers DEL
   * with success since 4.0.2, whatever the daemon reports: the removal is not blocked, and what the delegates held
   * leaks.
   */
  readonly failedDelBlocksRemoval: boolean;
}

const THIN: MultusVariant = { name: "thin", failedDelBlocksRemoval: true };
const THICK: MultusVariant = { name: "thick", failedDelBlocksRemoval: false };

export function multusVariant({ thick }: MultusConfig): MultusVariant {
  return thick ? THICK : THIN;
}

/** Settings without which a delegate fails DEL: kube-ovn's socket, and calico's datastore. */
export const REQUIRED_ON_DEL: ReadonlySet<string> = new Set(["server_socket", "kubernetes", "etcd_endpoints"]);
