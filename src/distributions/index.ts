import { criDockerd } from "./cri-dockerd.ts";
import { crio } from "./crio.ts";
import type { ContainerdPlaces, Distribution, RuntimeUnit } from "./distribution.ts";
import { k0s } from "./k0s.ts";
import { k3s } from "./k3s.ts";
import { kubeadm, kubeadmContainerd } from "./kubeadm.ts";
import { microk8s } from "./microk8s.ts";
import { rke2 } from "./rke2.ts";
import { talos } from "./talos.ts";

/** Embedded runtimes first, because their hosts may also run a plain containerd for something else. */
const DISTRIBUTIONS: readonly Distribution[] = [k3s, rke2, k0s, microk8s, kubeadm, talos, crio, criDockerd];

/** In the order of probing. */
export const SOCKETS = unique(DISTRIBUTIONS.flatMap(({ sockets }) => sockets));

export const CNI_CONF_DIRS = unique(DISTRIBUTIONS.map(({ cniConfDir }) => cniConfDir));

/** Those of a separate kubelet first. */
export const KUBELET_KUBECONFIGS = unique(
  [kubeadm, talos, ...DISTRIBUTIONS].flatMap(({ kubelet }) => kubelet.kubeconfig ?? []),
);

export const SERVING_CERTIFICATES = unique(DISTRIBUTIONS.flatMap(({ kubelet }) => kubelet.servingCertificate ?? []));

/** Processes with an embedded kubelet, by name, and the socket of the runtime that they start. */
export const EMBEDDED_KUBELETS: ReadonlyMap<string, string> = new Map(
  DISTRIBUTIONS.flatMap(({ kubelet, sockets: [socket = ""] }) =>
    (kubelet.embeddedIn ?? []).map((name): [string, string] => [name, socket]),
  ),
);

/** journalctl ignores units that do not exist. */
export const UNITS = unique(DISTRIBUTIONS.flatMap(({ units }) => units));

export const CONTAINERD_ROOTS = unique(DISTRIBUTIONS.flatMap(({ containerd }) => containerd?.root ?? []));

export interface OwnContainerd extends Required<ContainerdPlaces> {
  readonly name: Distribution["name"];
}

/** The containerd of a node whose distribution ships none, and the unit that starts it. */
export const PLAIN_CONTAINERD = { service: "containerd", ...kubeadmContainerd } as const;

/** Distributions that ship their own containerd. */
export const OWN_CONTAINERDS: readonly OwnContainerd[] = DISTRIBUTIONS.flatMap(({ name, containerd }) =>
  containerd?.binary === undefined ? [] : [{ name, ...containerd, binary: containerd.binary }],
);

export const RUNTIME_UNITS: readonly RuntimeUnit[] = DISTRIBUTIONS.flatMap(({ services }) => services);

/** The merged values of the distributions with the same socket; for single values, the first one. */
export interface SocketPlaces {
  readonly names: readonly Distribution["name"][];
  readonly cniConfDir: string;
  readonly cniBinDirs: readonly string[];
  readonly kubeletRoot: string;
  readonly units: readonly string[];
  readonly logFiles: readonly string[];
}

/** A socket at an unknown path is treated like that of a plain containerd. */
export function placesAt(socketPath: string): SocketPlaces {
  const plain = socketPath.replace(/^\/var\/run\//, "/run/");
  const known = DISTRIBUTIONS.filter(({ sockets }) => sockets.some((socket) => plain.endsWith(socket)));
  const [first = kubeadm] = known;
  const all = known.length === 0 ? [kubeadm] : known;
  return {
    names: all.map(({ name }) => name),
    cniConfDir: first.cniConfDir,
    cniBinDirs: unique(all.flatMap(({ cniBinDirs }) => cniBinDirs)),
    kubeletRoot: first.kubelet.root,
    units: unique(all.flatMap(({ units }) => units)),
    logFiles: unique(all.flatMap(({ logFiles }) => logFiles)),
  };
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}
