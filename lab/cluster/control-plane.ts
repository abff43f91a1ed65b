import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import type { CommandResult } from "../command.ts";
import type { ExecOptions } from "../node-exec.ts";
import { answering, type Service, service } from "../service.ts";
import { type Authority, makeAuthority } from "../stub-api/certificates.ts";
import type { Tools } from "../tools.ts";
import { type ApiReader, openApiReader } from "./api-reader.ts";
import { type Credentials, kubeconfig } from "./kubeconfig.ts";
import { type Machine, startMachine } from "./machine.ts";
import { API_SERVER_PORT, type ClusterAddresses, IPV4 } from "./network.ts";
import { type ClusterTools, ensureHelm, type HelmMajor } from "./tools.ts";

/**
 * etcd, kube-apiserver, kube-controller-manager and kube-scheduler in a separate machine, which is not affected by
 * power cuts of nodes.
 */
export interface ControlPlane {
  readonly initPid: number;
  readonly addresses: ClusterAddresses;
  readonly server: string;
  readonly authority: Authority;
  readonly apiServer: Service;
  readonly controllerManager: Service;
  readonly scheduler: Service;
  /** The socket of `kubectl proxy` with administrator's access to the API. */
  readonly proxySocket: string;
  readonly api: ApiReader;
  /** As the cluster's administrator; throws unless it ended with 0. Returns what it printed. */
  kubectl(args: readonly string[], options?: ExecOptions): Promise<string>;
  /** The same for a command that may fail. */
  tryKubectl(args: readonly string[]): Promise<CommandResult>;
  /** A script of the cluster's administrator, who has kubectl and curl. */
  shell(script: string): Promise<string>;
  /** The same for a script that may fail. */
  tryShell(script: string, options?: ExecOptions): Promise<CommandResult>;
  /** As the cluster's administrator; throws unless it ended with 0. Returns what it printed. */
  helm(args: readonly string[], major?: HelmMajor): Promise<string>;
  /** With these credentials; returns the result. */
  kubectlAs(credentials: Credentials, args: readonly string[], options?: ExecOptions): Promise<CommandResult>;
  /** Starts the API server again after it was stopped, and waits until it is ready. */
  startApiServer(): Promise<void>;
  /** STOP lets it accept connections and answer nothing. */
  signalApiServer(signal: "STOP" | "CONT"): Promise<void>;
  /** Compacts etcd: a client with an older version gets 410 Gone. */
  compact(): Promise<void>;
  destroy(): Promise<void>;
}

const PKI = "/etc/kubernetes/pki";
const ADMIN = "/etc/kubernetes/admin.conf";
const OTHER = "/etc/kubernetes/other.conf";
const ETCD = "http://127.0.0.1:2379";
const KUBECTL_MS = 120_000;
const HELM_MS = 600_000;

export async function startControlPlane(
  tools: Tools,
  programs: ClusterTools,
  addresses: ClusterAddresses = IPV4,
): Promise<ControlPlane> {
  const machine = await startMachine(tools, [programs.kubernetesDir]);
  try {
    return await startIn(machine, programs, addresses);
  } catch (error) {
    await machine.destroy();
    throw error;
  }
}

async function startIn(machine: Machine, programs: ClusterTools, addresses: ClusterAddresses): Promise<ControlPlane> {
  const host = addresses.controlPlane;
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${API_SERVER_PORT}`;
  const authority = makeAuthority(machine.dir, "lab-cluster");
  await writeCredentials(machine, authority, server, addresses);
  for (const ip of [addresses.controlPlane, addresses.kubernetesService]) {
    await machine.check(["ip", "address", "add", `${ip}/${addresses.hostPrefix}`, "dev", "lo"]);
  }

  const program = (name: string) => join(programs.kubernetesDir, name);
  const run = (name: string, command: readonly string[]) => service(machine, name, `/var/log/${name}.log`, command);
  const etcd = run("etcd", [programs.etcd, ...ETCD_FLAGS]);
  const apiServer = run("kube-apiserver", [
    program("kube-apiserver"),
    ...API_SERVER_FLAGS,
    `--advertise-address=${addresses.controlPlane}`,
    `--service-cluster-ip-range=${addresses.services}`,
  ]);
  const controllerManager = run("kube-controller-manager", [program("kube-controller-manager"), ...CONTROLLER_FLAGS]);
  const scheduler = run("kube-scheduler", [program("kube-scheduler"), ...SCHEDULER_FLAGS]);
  const proxySocket = "/run/lab-api.sock";
  const proxy = run("kubectl-proxy", [
    program("kubectl"),
    `--kubeconfig=${ADMIN}`,
    "proxy",
    `--unix-socket=${proxySocket}`,
  ]);
  const api = openApiReader(machine.livePath(proxySocket));

  async function startApiServer(): Promise<void> {
    await apiServer.start();
    await answering(apiServer, async () => ((await api.text("/readyz").catch(() => "")) === "ok" ? true : undefined));
  }

  await Promise.all([etcd.start(), proxy.start()]);
  await startApiServer();
  await Promise.all([controllerManager.start(), scheduler.start()]);
  const asAdmin = { env: { KUBECONFIG: ADMIN }, timeoutMs: KUBECTL_MS };
  return {
    get initPid() {
      return machine.initPid;
    },
    addresses,
    server,
    authority,
    apiServer,
    controllerManager,
    scheduler,
    api,
    get proxySocket() {
      return machine.livePath(proxySocket);
    },
    kubectl: (args, options = {}) =>
      machine.check(["kubectl", `--kubeconfig=${ADMIN}`, ...args], { timeoutMs: KUBECTL_MS, ...options }),
    tryKubectl: (args) => machine.exec(["kubectl", `--kubeconfig=${ADMIN}`, ...args], { timeoutMs: KUBECTL_MS }),
    shell: (script) => machine.check(["sh", "-euc", script], asAdmin),
    tryShell: (script, options = {}) => machine.exec(["sh", "-euc", script], { ...asAdmin, ...options }),
    helm: async (args, major) => {
      const helmProgram = await ensureHelm(major);
      return await machine.check([helmProgram, `--kubeconfig=${ADMIN}`, ...args], { timeoutMs: HELM_MS });
    },
    kubectlAs: async (credentials, args, options = {}) => {
      await machine.writeFile(OTHER, kubeconfig(server, authority.cert, credentials), 0o600);
      return await machine.exec(["kubectl", `--kubeconfig=${OTHER}`, ...args], { timeoutMs: KUBECTL_MS, ...options });
    },
    startApiServer,
    signalApiServer: async (signal) => {
      await machine.check(["sh", "-c", `kill -${signal} ${apiServer.pid}`]);
    },
    compact: async () => {
      const post = async (path: string, body: object) =>
        JSON.parse(await machine.check(["curl", "-sS", "-d", JSON.stringify(body), `${ETCD}/v3/${path}`])) as unknown;
      const { header } = (await post("maintenance/status", {})) as { readonly header: { readonly revision: string } };
      await post("kv/compaction", { revision: header.revision, physical: true });
    },
    destroy: () => machine.destroy(),
  };
}

const ETCD_FLAGS = [
  "--data-dir=/var/lib/etcd",
  `--listen-client-urls=${ETCD}`,
  `--advertise-client-urls=${ETCD}`,
  "--listen-peer-urls=http://127.0.0.1:2380",
  // The control plane never loses its power, and the disk is shared with the nodes under test.
  "--unsafe-no-fsync",
];

const API_SERVER_FLAGS = [
  `--etcd-servers=${ETCD}`,
  "--allow-privileged",
  "--authorization-mode=Node,RBAC",
  "--allow-privileged",
  "--enable-admission-plugins=NodeRestriction",
  `--client-ca-file=${PKI}/ca.crt`,
  `--tls-cert-file=${PKI}/apiserver.crt`,
  `--tls-private-key-file=${PKI}/apiserver.key`,
  `--kubelet-certificate-authority=${PKI}/ca.crt`,
  `--kubelet-client-certificate=${PKI}/apiserver-kubelet-client.crt`,
  `--kubelet-client-key=${PKI}/apiserver-kubelet-client.key`,
  "--kubelet-preferred-address-types=InternalIP",
  `--service-account-issuer=https://kubernetes.default.svc`,
  `--service-account-key-file=${PKI}/sa.pub`,
  `--service-account-signing-key-file=${PKI}/sa.key`,
  `--secure-port=${API_SERVER_PORT}`,
  "--profiling=false",
];

const CONTROLLER_FLAGS = [
  "--kubeconfig=/etc/kubernetes/controller-manager.conf",
  "--leader-elect=false",
  "--use-service-account-credentials",
  `--service-account-private-key-file=${PKI}/sa.key`,
  `--root-ca-file=${PKI}/ca.crt`,
];

const SCHEDULER_FLAGS = ["--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=false"];

/** kubeadm's files under /etc/kubernetes. */
async function writeCredentials(
  machine: Machine,
  authority: Authority,
  server: string,
  { controlPlane, kubernetesService }: ClusterAddresses,
): Promise<void> {
  const names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"].map(
    (name) => `DNS:${name}`,
  );
  const addresses = [controlPlane, kubernetesService, "127.0.0.1"].map((ip) => `IP:${ip}`);
  const pairs = {
    apiserver: authority.issue("/CN=kube-apiserver", { san: [...names, ...addresses].join(",") }),
    "apiserver-kubelet-client": authority.issue("/O=system:masters/CN=kube-apiserver-kubelet-client"),
  };
  for (const [stem, { cert, key }] of Object.entries(pairs)) {
    await machine.writeFile(`${PKI}/${stem}.crt`, cert);
    await machine.writeFile(`${PKI}/${stem}.key`, key, 0o600);
  }
  await machine.writeFile(`${PKI}/ca.crt`, authority.cert);
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  await machine.writeFile(`${PKI}/sa.key`, privateKey, 0o600);
  await machine.writeFile(`${PKI}/sa.pub`, publicKey);
  const subjects = {
    admin: "/O=system:masters/CN=kubernetes-admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    scheduler: "/CN=system:kube-scheduler",
  };
  for (const [stem, subject] of Object.entries(subjects)) {
    const config = kubeconfig(server, authority.cert, authority.issue(subject));
    await machine.writeFile(`/etc/kubernetes/${stem}.conf`, config, 0o600);
  }
}
