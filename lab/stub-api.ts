import { rm } from "node:fs/promises";
import type { PodRef } from "../src/snapshot/ids.ts";
import type { LabNode } from "./node.ts";
import { ensureTools } from "./tools.ts";

/**
 * An API server that knows pods and nothing else, inside the node. The pods are kept on its disk; the server is a
 * process and must be started after each boot.
 */
const STUB_API_URL = "http://127.0.0.1:8001";
export const STUB_KUBECONFIG = "/etc/lab-api/kubeconfig";

const PODS_DIR = "/var/lib/lab-api/pods";
const SERVER = "/opt/lab-api/serve";

/** Serves one request: a pod by its address, all of them under /api/v1/pods; what is sent to it is read and not kept. */
const SERVE_SCRIPT = `#!/bin/sh
read -r method path rest
length=0
while read -r name value; do
  case "$name" in
  [Cc]ontent-[Ll]ength:) length="\${value%?}" ;;
  "$(printf '\\r')" | "") break ;;
  esac
done
[ "$length" = 0 ] || head -c "$length" >/dev/null
answer() {
  printf 'HTTP/1.1 %s\\r\\nContent-Type: application/json\\r\\nContent-Length: %s\\r\\nConnection: close\\r\\n\\r\\n%s' "$1" "\${#2}" "$2"
}
path="\${path%%\\?*}"
file="${PODS_DIR}/$(printf '%s' "$path" | sed -n 's,^/api/v1/namespaces/\\([^/]*\\)/pods/\\([^/]*\\).*,\\1_\\2,p')"
if [ -f "$file" ]; then
  answer '200 OK' "$(cat "$file")"
elif [ "$path" = /api/v1/pods ]; then
  items=""
  for pod in ${PODS_DIR}/*; do
    [ ! -f "$pod" ] || items="$items\${items:+,}$(cat "$pod")"
  done
  answer '200 OK' '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":['"$items"']}'
else
  answer '404 Not Found' '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}'
fi
`;

export async function startStubApi(node: LabNode): Promise<void> {
  const { busybox } = await ensureTools();
  await node.writeFile(SERVER, SERVE_SCRIPT, 0o755);
  await node.writeFile(STUB_KUBECONFIG, JSON.stringify(kubeconfig()));
  await node.check(["sh", "-c", `setsid ${busybox} nc -ll -p 8001 -e ${SERVER} </dev/null >/dev/null 2>&1 &`]);
}

/** From now on the API knows this pod, bound to this node. */
export function apiKnows(node: LabNode, pod: PodRef): Promise<void> {
  const object = {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name: pod.name, namespace: pod.namespace, uid: pod.uid, resourceVersion: "1", annotations: {} },
    spec: { nodeName: node.hostname, containers: [{ name: "main", image: "unghost.lab/pause:1" }] },
    status: { phase: "Running" },
  };
  return node.writeFile(podFile(pod), JSON.stringify(object));
}

export function apiForgets(node: LabNode, pod: PodRef): Promise<void> {
  return rm(node.path(podFile(pod)), { force: true });
}

function podFile(pod: PodRef): string {
  return `${PODS_DIR}/${pod.namespace}_${pod.name}`;
}

function kubeconfig(): unknown {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster: { server: STUB_API_URL } }],
    users: [{ name: "lab", user: {} }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
    "current-context": "lab",
  };
}
