import { mkdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { findKubeletServer } from "../../src/node/kubelet-process.ts";
import { readKubernetes } from "../../src/node/kubernetes.ts";
import { base64, makeRig } from "../kube/rig.ts";
import { type Asked, listOf, podObject, type Reply, statusOf } from "../kube/stub-server.ts";
import { type OwnerParts, ownProcess } from "../support/process-owner.ts";
import { fill, tempDir } from "./temp-dir.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const NEVER = new AbortController().signal;
const UID = "310e3cd6-63ea-446b-a218-25835c73ca24";
const OTHER_UID = "77777777-2222-3333-4444-555555555555";
const STATIC_UID = "77df7963275fb8ad3ea0cb9bb075c005";
const KUBECONFIG = "/etc/kubernetes/own.conf";

interface KubeletParts {
  readonly argv?: readonly string[];
  /** Where it really listens: local address in the kernel's notation, and port. */
  readonly listens?: readonly (readonly [address: string, port: number])[];
  readonly netns?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly holdsSocket?: boolean;
  readonly owner?: OwnerParts;
}

const LOOPBACK = "0100007F";

/** A node with a running kubelet in /proc. */
function nodeWith({
  argv = [],
  listens = [],
  netns,
  files = {},
  holdsSocket = true,
  owner = {},
}: KubeletParts): string {
  const stat = (pid: number, name: string): string => `${pid} (${name}) S 0 1 1 0 -1 4194560 ${"0 ".repeat(12)}1 0 0\n`;
  const line = ([address, port]: readonly [string, number], index: number): string => {
    const local = `${address}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    return `   ${index}: ${local} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 ${900 + index} 1 x\n`;
  };
  const root = fill(tempDir(), {
    "proc/uptime": "100.00 100.00\n",
    "proc/1/stat": stat(1, "init"),
    "proc/7/stat": stat(7, "kubelet"),
    "proc/7/cmdline": ["/usr/bin/kubelet", ...argv].map((one) => `${one}\0`).join(""),
    "proc/7/net/tcp": `  sl  local_address rem_address   st\n${listens.map(line).join("")}`,
    [`var/lib/kubelet/pods/${UID}/volumes/.keep`]: "",
    [`var/lib/kubelet/pods/${OTHER_UID}/volumes/.keep`]: "",
    ...files,
  });
  ownProcess(root, 1);
  ownProcess(root, 7, owner);
  symlinkSync(netns ?? readlinkSync("/proc/self/ns/net"), join(root, "proc/7/ns/net"));
  mkdirSync(join(root, "proc/7/fd"));
  for (const index of listens.keys()) {
    symlinkSync(holdsSocket ? `socket:[${900 + index}]` : "/dev/null", join(root, `proc/7/fd/${index}`));
  }
  return root;
}

describe("address of the kubelet", () => {
  const both = [
    [LOOPBACK, 10250],
    ["00000000", 10255],
  ] as const;

  test.each<readonly [string, KubeletParts, readonly string[]]>([
    ["its own ports, the open one first", { listens: both }, ["http://127.0.0.1:10255", "https://127.0.0.1:10250"]],
    ["only those that it has open", { listens: [[LOOPBACK, 10250]] }, ["https://127.0.0.1:10250"]],
    [
      "those in its flags",
      {
        argv: ["--port=20250", "--read-only-port", "20255"],
        listens: [
          [LOOPBACK, 20250],
          [LOOPBACK, 20255],
        ],
      },
      ["http://127.0.0.1:20255", "https://127.0.0.1:20250"],
    ],
    [
      "those in its configuration file",
      {
        argv: ["--config=/etc/kubelet.yaml"],
        files: { "etc/kubelet.yaml": "kind: KubeletConfiguration\nport: 30250\nreadOnlyPort: 0\nhealthzPort: 10248\n" },
        listens: [
          [LOOPBACK, 30250],
          [LOOPBACK, 10248],
        ],
      },
      ["https://127.0.0.1:30250"],
    ],
  ])("%s", async (_what, parts, urls) => {
    const server = await findKubeletServer(nodeWith(parts), NEVER);

    expect(server?.urls.map(({ origin }) => origin)).toEqual(urls);
  });

  test.each<readonly [string, KubeletParts]>([
    ["a port of another process", { listens: both, holdsSocket: false }],
    ["a kubelet in another network", { listens: both, netns: "net:[1]" }],
    ["a kubelet that listens only on another address", { listens: [["0200A8C0", 10250]] }],
  ])("is not %s", async (_what, parts) => {
    expect(await findKubeletServer(nodeWith(parts), NEVER)).toBeUndefined();
  });
});

describe("without an API and without credentials", () => {
  const list = listOf([
    podObject({ name: "web", uid: UID, phase: "Succeeded", annotations: { "unghost.dev/ignore": "true" } }),
    podObject({ name: "static-n1", uid: STATIC_UID, annotations: { "kubernetes.io/config.hash": STATIC_UID } }),
  ]);

  async function readHere(root: string, timeoutMs = 20_000) {
    const places = { kubeconfig: undefined, noKube: false, node: "n1", kubeletRoot: "/var/lib/kubelet", env: {} };
    return await readKubernetes({ ...places, root, timeoutMs });
  }

  function portOf(url: string): number {
    return Number(new URL(url).port);
  }

  test("merges kubelet's answer about its pods with its directories", async () => {
    const { url, asked } = await rig.serveWith(() => ({ body: list }));
    const port = portOf(url);

    const kubernetes = await readHere(nodeWith({ argv: [`--read-only-port=${port}`], listens: [[LOOPBACK, port]] }));

    expect(asked.map(({ path, authorization }) => [path, authorization])).toEqual([["/pods", undefined]]);
    expect(kubernetes).toMatchObject({
      source: "kubelet",
      pods: [
        { uid: UID, name: "web", phase: "Succeeded", ignored: true },
        { uid: STATIC_UID, name: "static-n1" },
        // It may have started without an API, and not have this pod: its directory does.
        { uid: OTHER_UID },
      ],
    });
  });

  test("authenticates with kubelet's own certificate, and identifies the kubelet by its process", async () => {
    const kubelet = rig.ca.issue("/O=system:nodes/CN=system:node:n1");
    const serving = rig.ca.issue("/CN=n1-ca@1763190000");
    const own = ({ client }: Asked): Reply =>
      client === "system:node:n1" ? { body: list } : statusOf(401, "Unauthorized");
    const { url } = await rig.serveWith(own, serving);
    const gone = "https://127.0.0.1:1";
    const files = {
      [KUBECONFIG.slice(1)]: JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
        clusters: [{ name: "c", cluster: { server: gone, "certificate-authority-data": base64(rig.ca.cert) } }],
        users: [
          {
            name: "u",
            user: { "client-certificate-data": base64(kubelet.cert), "client-key-data": base64(kubelet.key) },
          },
        ],
      }),
    };
    const argv = [`--port=${portOf(url)}`, `--kubeconfig=${KUBECONFIG}`];

    const kubernetes = await readHere(nodeWith({ argv, listens: [[LOOPBACK, portOf(url)]], files }));

    expect(kubernetes).toMatchObject({ source: "kubelet", pods: [{ name: "web" }, { name: "static-n1" }, {}] });
  });

  test.each<readonly [string, Reply]>([
    ["refuses all requests", statusOf(401, "Unauthorized")],
    ["cannot reach its authorizer", statusOf(500, "Internal Error")],
    ["never answers", () => undefined],
    ["returns something else", { body: "<html>" }],
  ])("falls back to the directories when kubelet %s", async (_what, reply) => {
    const { url } = await rig.serveWith(() => reply);
    const port = portOf(url);

    const kubernetes = await readHere(
      nodeWith({ argv: [`--read-only-port=${port}`], listens: [[LOOPBACK, port]] }),
      1000,
    );

    expect(kubernetes.source === "kubelet" && kubernetes.pods.map(({ uid }) => uid).toSorted()).toEqual([
      UID,
      OTHER_UID,
    ]);
  });
});

test("parses the answer of a real kubelet", async () => {
  const recorded = readFileSync(join(import.meta.dirname, "fixtures/kubelet-pods.json"), "utf8");
  const { url } = await rig.serveWith(() => ({ body: recorded }));
  const port = Number(new URL(url).port);
  const root = nodeWith({ argv: [`--read-only-port=${port}`], listens: [[LOOPBACK, port]] });
  const places = { kubeconfig: undefined, noKube: false, node: "n1", kubeletRoot: "/var/lib/kubelet", env: {} };

  const kubernetes = await readKubernetes({ ...places, root, timeoutMs: 20_000 });

  expect(kubernetes.source === "kubelet" && kubernetes.pods.filter(({ name }) => name !== undefined)).toMatchObject([
    { namespace: "kube-system", name: "static-lab-160981", uid: "77df7963275fb8ad3ea0cb9bb075c005", phase: "Running" },
    { namespace: "default", name: "owned", phase: "Running", controller: "ReplicaSet", ignored: true },
  ]);
});
