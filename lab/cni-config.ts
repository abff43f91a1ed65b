/** A network configuration list as the runtime reads it from /etc/cni/net.d. */
export interface CniConflist {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly Readonly<Record<string, unknown>>[];
}

export const CNI_CONF_FILE = "/etc/cni/net.d/10-lab.conflist";
export const CNI_BIN_DIR = "/opt/cni/bin";

/**
 * A bridge with host-local addresses, with flannel's network name on k3s. No masquerading, because the lab has no
 * iptables.
 */
export function bridgeNetwork(): CniConflist {
  return {
    cniVersion: "1.0.0",
    name: "cbr0",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        ipMasq: false,
        ipam: { type: "host-local", ranges: [[{ subnet: "10.88.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] },
      },
    ],
  };
}
