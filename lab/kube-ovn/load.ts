/** The name of the network in the store of its addresses. */
export const KUBE_OVN_NETWORK = "kube-ovn";

/** What a request costs the daemon's processor, and whether every DEL fails. */
export interface Load {
  readonly addCpuMs?: number;
  readonly delCpuMs?: number;
  readonly delFails?: boolean;
}
