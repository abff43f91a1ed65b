/** The socket through which kubelet and sidecars reach a CSI driver's node plugin. */
export interface CsiSocket {
  readonly driver: string;
  readonly dir: string;
  readonly path: string;
  /** `dead`: the file exists, and no process listens. */
  readonly state: "listening" | "dead" | "missing";
  /** Its registrar has left its socket for kubelet: one whose driver was uninstalled has taken it along. */
  readonly registered: boolean;
}
