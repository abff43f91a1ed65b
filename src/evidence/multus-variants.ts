import type { MultusConfig } from "../snapshot/types.ts";

/**
 * What differs between the two ways to run multus. Both keep their caches in the same places: `<cniDir>/<sandbox id>`
 * for the delegates, `<cniDir>/results` for what libcni caches of each of them.
 */
export interface MultusVariant {
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
