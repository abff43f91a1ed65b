import { existsSync, readFileSync } from "node:fs";
import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { CNI_BIN_DIR, CNI_CONF_FILE } from "../cni-config.ts";
import { ensureCniProgram } from "../cni-programs.ts";
import { DELEGATE_SOCKET } from "../delegate-daemon.ts";
import { useMultus } from "../multus.ts";
import type { LabNode } from "../node.ts";
import { createCgroupScript, joinCgroupScript, limitCpu } from "../node-cgroup.ts";
import { until } from "../poll.ts";
import type { MultusVersion } from "../runtimes.ts";
import { KUBE_OVN_NETWORK, type Load } from "./load.ts";

/** kube-ovn's own CNI plugin, built from its source; only its daemon is the lab's. */
export const KUBE_OVN = "kube-ovn";
const DAEMON = join(import.meta.dirname, "daemon.ts");
const LOAD_FILE = "/var/lib/lab-kube-ovn.json";
const PID_FILE = "/run/lab-kube-ovn.pid";
const CGROUP = "lab-kube-ovn";
const START_MS = 60_000;

/** kube-ovn behind thin multus, as the first report of the delete deadlock has it. */
export async function useKubeOvn(node: LabNode, multus?: MultusVersion): Promise<void> {
  await installKubeOvn(node);
  await useMultus(node, multus);
  await setKubeOvnConf(node);
}

/** The plugin, and its daemon. */
export async function installKubeOvn(node: LabNode): Promise<void> {
  const built = await ensureCniProgram("kube-ovn");
  if (typeof built !== "string") throw new Error(`no node with kube-ovn: ${built.reason}`);
  await symlink(join(built, "cni"), node.path(`${CNI_BIN_DIR}/${KUBE_OVN}`));
  await startKubeOvnDaemon(node);
}

/** As kube-ovn writes it. multus reads it at every call. */
export function setKubeOvnConf(node: LabNode): Promise<void> {
  const plugins = [{ type: KUBE_OVN, server_socket: DELEGATE_SOCKET }];
  return node.writeFile(CNI_CONF_FILE, JSON.stringify({ cniVersion: "1.0.0", name: KUBE_OVN_NETWORK, plugins }));
}

/** Starts the daemon and waits until it listens. It ends with a power cut. */
export async function startKubeOvnDaemon(node: LabNode): Promise<void> {
  await rm(node.livePath(PID_FILE), { force: true });
  const program = `${process.execPath} ${DAEMON} ${DELEGATE_SOCKET} ${PID_FILE} ${LOAD_FILE}`;
  const start = `setsid ${program} </dev/null >>/var/log/lab-kube-ovn.log 2>&1 &`;
  await node.check(["sh", "-c", `${createCgroupScript(CGROUP)}\n(${joinCgroupScript(CGROUP)}\n${start})`]);
  await until("kube-ovn's daemon listens", START_MS, () => existsSync(node.livePath(PID_FILE)) || undefined);
}

/** SIGKILL. The socket file stays, as after a crash. */
export async function stopKubeOvnDaemon(node: LabNode): Promise<void> {
  const pid = Number(readFileSync(node.livePath(PID_FILE), "utf8"));
  await node.kill(pid);
  await until("kube-ovn's daemon is gone", START_MS, () => !existsSync(node.livePath(`/proc/${pid}`)) || undefined);
}

/** From the next request on. */
export function loadKubeOvnDaemon(node: LabNode, load: Load): Promise<void> {
  return node.writeFile(LOAD_FILE, JSON.stringify(load));
}

export function limitKubeOvnCpu(node: LabNode, milliCpu: number): Promise<void> {
  return limitCpu(node, CGROUP, milliCpu);
}
