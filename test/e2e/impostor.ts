import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkoutDir } from "../../lab/cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import { type KeyPair, makeAuthority } from "../../lab/stub-api/certificates.ts";
import { HANG_GUARD_MS } from "../lab/real-node.ts";

export const UNPRIVILEGED = 65534;

/** Answers every request like a kubelet without authentication, and records what it was sent. */
const SERVER = `
import http.server, ssl, sys, os
port, cert, log = int(sys.argv[1].split("=")[1]), sys.argv[2], sys.argv[3]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(log, "a") as out: out.write(self.path.split("?")[0] + " " + str(self.headers.get("Authorization")) + "\\n")
        self.send_response(200 if self.headers.get("Authorization") else 401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"kind":"PodList","metadata":{},"items":[]}')
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert)
server.socket = context.wrap_socket(server.socket, server_side=True)
open(log, "a").write("listening\\n")
server.serve_forever()
`;

export interface KubeletStandIn {
  readonly user: number;
  readonly kubeconfig: string;
  readonly identity: KeyPair;
  readonly port?: number;
}

/** A process with kubelet's name and its port open: python, through a link of that name. */
export async function runKubeletStandIn(
  node: LabNode,
  standIn: KubeletStandIn,
): Promise<{ sent(): readonly string[] }> {
  const { user, kubeconfig, identity, port = 31337 } = standIn;
  const dir = `/tmp/stand-in-${port}`;
  await node.check(["mkdir", "-p", dir]);
  await node.check(["ln", "-sf", await realPython(node), `${dir}/kubelet`]);
  await node.check(["tee", `${dir}/server.py`], { stdin: SERVER });
  await node.check(["tee", `${dir}/cert.pem`], { stdin: identity.cert + identity.key });
  await node.check(["sh", "-c", `touch ${dir}/log; chown -R ${user}:${user} ${dir}`]);
  const program = `${dir}/kubelet ${dir}/server.py --port=${port} ${dir}/cert.pem ${dir}/log --kubeconfig=${kubeconfig}`;
  await node.check(["sh", "-c", `setsid ${program} </dev/null >${dir}/out 2>&1 &`], { user });
  const lines = () =>
    readFileSync(node.livePath(`${dir}/log`), "utf8")
      .trim()
      .split("\n");
  await until("the stand-in for kubelet listens", HANG_GUARD_MS, () => lines().includes("listening") || undefined);
  return { sent: () => lines().filter((line) => line.startsWith("/")) };
}

/** A file that only root may read, for a kubeconfig to name. */
export async function writeSecret(node: LabNode, path: string): Promise<string> {
  await node.check(["mkdir", "-p", dirname(path)]);
  await node.check(["sh", "-c", `umask 077; cat >${path}`], { stdin: "top-secret" });
  return path;
}

/** For a server that does not exist: there is no API here. */
export function kubeconfigWithToken(tokenFile: string): string {
  return JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "u", user: { tokenFile } }],
  });
}

export function selfSigned(name: string): KeyPair {
  const dir = mkdtempSync(join(tmpdir(), "unghost-kubelet-ca-"));
  try {
    const authority = makeAuthority(dir, "own");
    const { cert, key } = authority.issue(`/CN=${name}`, { san: `DNS:${name}` });
    return { cert: `${cert}\n${authority.cert}`, key };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A runtime without containers that reports its plugin directory. */
export async function runSimulatedRuntime(
  node: LabNode,
  runtime: { readonly user: number; readonly socket: string; readonly cniBinDir: string },
): Promise<void> {
  const main = join(checkoutDir() ?? process.cwd(), "lab/simulated/main.ts");
  const { user, socket, cniBinDir } = runtime;
  await node.check(["sh", "-c", `mkdir -p ${dirname(socket)} && chown ${user}:${user} ${dirname(socket)}`]);
  const program = `${process.execPath} ${main} --socket ${socket} --cni-bin-dir ${cniBinDir}`;
  await node.check(["sh", "-c", `setsid ${program} </dev/null >${dirname(socket)}/out 2>&1 &`], { user });
  const output = () => readFileSync(node.livePath(`${dirname(socket)}/out`), "utf8");
  await until(`the runtime at ${socket} is up`, HANG_GUARD_MS, () => output().includes("ready") || undefined);
}

/** Python may itself be a link; a process has the name of the executed link, whatever its target is. */
async function realPython(node: LabNode): Promise<string> {
  return (await node.check(["sh", "-c", 'readlink -f "$(command -v python3)"'])).trim();
}
