import type { MultusConfig } from "../../snapshot/types/cni.ts";

/** What multus does differs by release; a node does not show its version, so these are printed and not compared. */
export const MULTUS = {
  /** Up to here a cache that does not parse fails every DEL; later ones succeed without calling any delegate. */
  corruptCacheFailsUpTo: "3.9",
  /** From this major release on a cache that does not parse makes DEL succeed: what the marker relies on. */
  markerReadFrom: 4,
  /** The thick plugin's shim answers DEL with success from here on, whatever the daemon reports. */
  shimSwallowsDelErrorsFrom: "4.0.2",
  /** In between, fields of its own are stripped from a delegate's file-based configuration on DEL. */
  lossyConflist: { from: "4.2.1", to: "4.3.0" },
} as const;

/**
 * What differs between the two ways to run multus. Both keep their caches in the same places: `<cniDir>/<sandbox id>`
 * for the delegates, `<cniDir>/results` for what libcni caches of each of them.
 */
interface MultusVariant {
  readonly name: "thin" | "thick";
  /**
   * Whether the runtime learns that a delegate's DEL failed, and so insists on it. The thick shim answers DEL with
   * success from 4.0.2 on, whatever the daemon reports: nothing is in the way of a removal, and what the delegates held
   * leaks.
   */
  readonly failedDelBlocksRemoval: boolean;
}

const THIN: MultusVariant = { name: "thin", failedDelBlocksRemoval: true };
const THICK: MultusVariant = { name: "thick", failedDelBlocksRemoval: false };

export function multusVariant({ thick }: MultusConfig): MultusVariant {
  return thick ? THICK : THIN;
}

/** Settings without which a delegate refuses DEL: kube-ovn's socket, and how calico reaches its datastore. */
export const REQUIRED_ON_DEL: ReadonlySet<string> = new Set(["server_socket", "kubernetes", "etcd_endpoints"]);
