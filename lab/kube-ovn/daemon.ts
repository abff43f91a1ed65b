/**
 * Stands in for kube-ovn's daemon on a lab node: the API that its CNI plugin calls, with Debian's bridge in place of
 * Open vSwitch and host-local in place of the controller's addresses. Arguments: socket, pid file, load file.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { KUBE_OVN_NETWORK, type Load } from "./load.ts";

const BRIDGE = "/opt/cni/bin/bridge";
const CIDR = "10.16.0.0/16";

interface CniRequest {
  readonly container_id: string;
  readonly net_ns: string;
  readonly if_name: string;
}

interface BridgeResult {
  readonly ips: readonly { readonly address: string; readonly gateway: string }[];
  readonly interfaces: readonly { readonly mac: string; readonly sandbox?: string }[];
}

const [socket = "", pidFile = "", loadFile = ""] = process.argv.slice(2);

function load(): Load {
  return existsSync(loadFile) ? (JSON.parse(readFileSync(loadFile, "utf8")) as Load) : {};
}

async function bridge(command: "ADD" | "DEL", asked: CniRequest): Promise<string> {
  const child = spawn(BRIDGE, {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: asked.container_id,
      CNI_NETNS: asked.net_ns,
      CNI_IFNAME: asked.if_name,
      CNI_PATH: dirname(BRIDGE),
      PATH: process.env["PATH"],
    },
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  child.stdin.end(
    JSON.stringify({
      cniVersion: "1.0.0",
      name: KUBE_OVN_NETWORK,
      type: "bridge",
      bridge: "ovn0",
      isGateway: true,
      ipam: { type: "host-local", ranges: [[{ subnet: CIDR }]] },
    }),
  );
  const output = await text(child.stdout);
  if ((await ended) !== 0) throw new Error(output);
  return output;
}

/** What the database of a real daemon costs, in the order in which requests came. */
function work(ms: number): void {
  const start = process.cpuUsage();
  const used = (): number => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
  while (used() < ms);
}

async function answer(path: string, asked: CniRequest): Promise<{ readonly code: number; readonly body: object }> {
  const { addCpuMs = 0, delCpuMs = 0, delFails = false } = load();
  if (path === "/api/v1/del") {
    work(delCpuMs);
    if (delFails) return { code: 500, body: { error: "failed to delete the port" } };
    await bridge("DEL", asked);
    return { code: 204, body: {} };
  }
  work(addCpuMs);
  const { ips, interfaces } = JSON.parse(await bridge("ADD", asked)) as BridgeResult;
  const [ip] = ips;
  const inPod = interfaces.find(({ sandbox }) => sandbox !== undefined && sandbox !== "");
  return {
    code: 200,
    body: {
      protocol: "IPv4",
      address: ip?.address.split("/")[0],
      gateway: ip?.gateway,
      cidr: CIDR,
      mac_address: inPod?.mac,
      mtu: 1500,
      nicname: asked.if_name,
    },
  };
}

mkdirSync(dirname(socket), { recursive: true });
rmSync(socket, { force: true });
createServer((request, response) => {
  void text(request)
    .then((body) => answer(request.url ?? "", JSON.parse(body) as CniRequest))
    .catch((error: unknown) => ({ code: 500, body: { error: String(error) } }))
    .then(({ code, body }) => response.writeHead(code).end(code === 204 ? undefined : JSON.stringify(body)));
}).listen(socket, () => writeFileSync(pidFile, String(process.pid)));
