import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Service, service } from "../service.ts";
import type { Cluster } from "./cluster.ts";
import { DIR, DRIVER, DRIVER_SOCKET, PROGRAM, REGISTRATION } from "./csi-storage.ts";
import { kubeconfig } from "./kubeconfig.ts";

const ATTACHER_PROGRAM = join(import.meta.dirname, "../csi/attacher.ts");
const ATTACHER_KUBECONFIG = "/etc/lab-attacher/kubeconfig";

/** A driver whose volumes must be attached before a node may mount them. Both run as services of the node. */
export interface AttachingDriver {
  readonly attacher: Service;
  /** Serves the socket that kubelet mounts through. */
  readonly nodePlugin: Service;
  /** From now on the storage fails to attach, with this error. */
  refuse(message: string): Promise<void>;
  accept(): Promise<void>;
  /** The calls of the storage, in order: `attach <handle> <node>`, `detach <handle> <node>`. */
  calls(): readonly string[];
  /** The directory of a volume's content on the node. */
  contentOf(handle: string): string;
}

export async function startAttachingDriver(cluster: Cluster): Promise<AttachingDriver> {
  const { node, controlPlane } = cluster;
  const { lab } = node;
  await cluster.apply([
    { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: true } },
  ]);
  const { server, authority } = controlPlane;
  const identity = authority.issue("/O=system:masters/CN=lab-attacher");
  await lab.writeFile(ATTACHER_KUBECONFIG, kubeconfig(server, authority.cert, identity), 0o600);
  const run = (name: string, command: readonly string[]) =>
    service(lab, name, `/var/log/${name}.log`, [process.execPath, ...command]);
  const driver = run("csi-driver", [PROGRAM, DRIVER, node.name, DRIVER_SOCKET, REGISTRATION, "mount"]);
  const attacher = run("csi-attacher", [ATTACHER_PROGRAM, DRIVER, DRIVER_SOCKET, ATTACHER_KUBECONFIG]);
  await driver.start();
  await attacher.start();
  const calls = lab.path(`${DIR}/calls`);
  return {
    attacher,
    nodePlugin: driver,
    refuse: (message) => lab.writeFile(`${DIR}/refuse`, message),
    accept: () => rm(lab.path(`${DIR}/refuse`), { force: true }),
    calls: () => (existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : []),
    contentOf: (handle) => `${DIR}/volumes/${handle}`,
  };
}
