import { existsSync, readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { request } from "node:http";
import { CNI_BIN_DIR } from "./cni-config.ts";
import { waitForNetwork } from "./cni-network.ts";
import { installDelegate, startDelegateDaemon } from "./delegate-daemon.ts";
import { multusOrThrow, setDelegate } from "./multus.ts";
import type { LabNode } from "./node.ts";
import { createCgroupScript, joinCgroupScript, limitCpu } from "./node-cgroup.ts";
import { until } from "./poll.ts";
import type { MultusVersion } from "./runtimes.ts";
import { API_PORT, STUB_CA, startStubApi } from "./stub-api.ts";

/**
 * Thick multus as in its upstream manifest: the daemon in its own mount namespace and cgroup, with the host under
 * /hostroot, where it runs its delegates; the runtime calls the shim. There is no container around it, so that a fault
 * can be injected into the daemon alone.
 */
export const MULTUS_SOCKET = "/run/multus/multus.sock";
export const MULTUS_DAEMON_LOG = "/var/log/multus-daemon.log";
export const DAEMON_CONF_FILE = "/etc/cni/net.d/multus.d/daemon-config.json";
export const DAEMON_BINARY = "/opt/multus/multus-daemon";
const PID_FILE = "/run/lab-multus.pid";
const SECRETS_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";
const CGROUP = "lab-multus";
const START_MS = 120_000;

export const DAEMON_CONF = {
  chrootDir: "/hostroot",
  cniVersion: "0.3.1",
  logLevel: "verbose",
  logToStderr: true,
  cniConfigDir: "/etc/cni/net.d",
  multusAutoconfigDir: "/etc/cni/net.d",
  multusConfigFile: "auto",
  socketDir: "/run/multus/",
};

/** The API server that the daemon uses. */
export interface MultusApi {
  readonly host: string;
  readonly port: number;
  /** The CA certificate of the server. */
  readonly authority: string;
  readonly token: string;
}

/**
 * Installs thick multus, its delegate and the delegate's daemon. All processes end with a power cut. The daemon uses
 * the stub API unless another one is given.
 */
export async function useThickMultus(node: LabNode, version?: MultusVersion, api?: MultusApi): Promise<void> {
  const multus = await multusOrThrow(version);
  await symlink(multus.shim, node.path(`${CNI_BIN_DIR}/multus-shim`));
  await node.writeFile(DAEMON_BINARY, readFileSync(multus.daemon), 0o755);
  await node.writeFile(DAEMON_CONF_FILE, JSON.stringify(DAEMON_CONF));
  await installDelegate(node);
  await setDelegate(node, "asks-daemon");
  await startThickMultus(node, api);
}

/** Starts everything that thick multus needs, after a boot. */
export async function startThickMultus(node: LabNode, api?: MultusApi): Promise<void> {
  if (api === undefined) await startStubApi(node, "valid");
  await startDelegateDaemon(node);
  await startMultusDaemon(node, api);
  await waitForNetwork(node, "multus-shim");
}

/** Starts the daemon and waits until it answers. Like every start, this writes 00-multus.conf. */
export async function startMultusDaemon(node: LabNode, api: MultusApi = stubApi(node)): Promise<void> {
  const env = { LAB_CA: api.authority, LAB_TOKEN: api.token };
  await node.check(["sh", "-c", startScript(node.hostname, api)], { env });
  await untilMultusAnswers(node);
}

export async function untilMultusAnswers(node: LabNode): Promise<void> {
  await until("the multus daemon answers", START_MS, () => answers(node));
}

/** In the node's pid namespace. */
export function multusDaemonPid(node: LabNode): number {
  return Number(readFileSync(node.livePath(PID_FILE), "utf8"));
}

/** SIGKILL. The socket file stays, as after an OOM kill. */
export async function killMultusDaemon(node: LabNode): Promise<void> {
  const pid = multusDaemonPid(node);
  await node.kill(pid);
  await until("the multus daemon is gone", START_MS, () => !existsSync(node.livePath(`/proc/${pid}`)) || undefined);
}

export function limitMultusCpu(node: LabNode, milliCpu: number): Promise<void> {
  return limitCpu(node, CGROUP, milliCpu);
}

function stubApi(node: LabNode): MultusApi {
  return { host: "127.0.0.1", port: API_PORT, authority: readFileSync(node.path(STUB_CA), "utf8"), token: "lab" };
}

/** The daemon uses the API like a pod: by environment, with the files of its service account. */
function startScript(nodeName: string, { host, port }: MultusApi): string {
  return `
set -e
mount --make-rshared /
mkdir -p /hostroot ${SECRETS_DIR}
printf '%s' "$LAB_CA" >${SECRETS_DIR}/ca.crt
printf '%s' "$LAB_TOKEN" >${SECRETS_DIR}/token
unset LAB_CA LAB_TOKEN
${createCgroupScript(CGROUP)}
export KUBERNETES_SERVICE_HOST=${host} KUBERNETES_SERVICE_PORT=${port} MULTUS_NODE_NAME=${nodeName}
(
  ${joinCgroupScript(CGROUP)}
  exec setsid unshare --mount --propagation slave sh -c '
    mount --rbind / /hostroot
    echo $$ >${PID_FILE}
    exec ${DAEMON_BINARY} -config ${DAEMON_CONF_FILE}'
) </dev/null >>${MULTUS_DAEMON_LOG} 2>&1 &`;
}

function answers(node: LabNode): Promise<true | undefined> {
  return new Promise((resolve) => {
    const asked = request({ socketPath: node.livePath(MULTUS_SOCKET), path: "/healthz", timeout: 5000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? true : undefined);
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(undefined));
    asked.end();
  });
}
