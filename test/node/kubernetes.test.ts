import { symlinkSync } from "node:fs";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { ClusterMirror } from "../../src/kube/mirror.ts";
import { readKubernetes } from "../../src/node/kubernetes.ts";
import { base64, makeRig, NAMESPACES, NODE, ordinary, PODS } from "../kube/rig.ts";
import { listOf, nodeObject, podObject, type Reply } from "../kube/stub-server.ts";
import { fill, tempDir } from "./temp-dir.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const UID = "310e3cd6-63ea-446b-a218-25835c73ca24";
const STATIC_UID = "0b3a8a6f2f3c4d5e6f708192a3b4c5d6";

function kubeconfigFor(server: string, user: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server, "certificate-authority-data": base64(rig.ca.cert) } }],
    users: [{ name: "u", user }],
  });
}

interface Case {
  readonly kubeconfig?: string;
  readonly noKube?: boolean;
  readonly timeoutMs?: number;
  readonly mirror?: ClusterMirror;
}

function readHere(root: string, { kubeconfig, noKube = false, timeoutMs = 20_000, mirror }: Case = {}) {
  const places = { root, kubeconfig, noKube, timeoutMs, node: "n1", kubeletRoot: "/var/lib/kubelet", env: {} };
  return readKubernetes({ ...places, ...(mirror === undefined ? {} : { mirror }) });
}

const KUBELET_POD = { [`var/lib/kubelet/pods/${UID}/volumes/.keep`]: "" };
const kubeletPod = expect.objectContaining({ uid: UID });

describe("without the API", () => {
  test("uses kubelet's directories, and missing credentials are not a problem", async () => {
    expect(await readHere(fill(tempDir(), KUBELET_POD))).toEqual({ source: "kubelet", pods: [kubeletPod] });
  });

  test("a machine without a kubelet has no source", async () => {
    expect(await readHere(tempDir())).toEqual({ source: "none" });
  });

  test("--no-kube uses no source", async () => {
    expect(await readHere(fill(tempDir(), KUBELET_POD), { noKube: true })).toEqual({ source: "none", unused: true });
  });
});

describe("with an unavailable API", () => {
  const silent: Reply = () => undefined;
  test.each<[string, (root: string) => Promise<Case>, RegExp]>([
    ["no such kubeconfig", (root) => Promise.resolve({ kubeconfig: `${root}/none` }), /there is no kubeconfig/],
    [
      "no process listens",
      async (root) => {
        const gone = await rig.serve();
        await gone.close();
        fill(root, { kubeconfig: kubeconfigFor(gone.url) });
        return { kubeconfig: `${root}/kubeconfig` };
      },
      /cannot be reached/,
    ],
    [
      "no answer",
      async (root) => {
        const { url } = await rig.serve({ [PODS]: () => silent, [NODE]: () => silent, [NAMESPACES]: () => silent });
        fill(root, { kubeconfig: kubeconfigFor(url) });
        return { kubeconfig: `${root}/kubeconfig`, timeoutMs: 300 };
      },
      /did not answer in time/,
    ],
  ])("%s: uses kubelet's directories, with the reason", async (_what, prepare, why) => {
    const root = fill(tempDir(), KUBELET_POD);

    const kubernetes = await readHere(root, await prepare(root));

    expect(kubernetes).toEqual({ source: "kubelet", pods: [kubeletPod], error: expect.stringMatching(why) });
  });

  test("without a kubelet: no source, with the reason", async () => {
    expect(await readHere(tempDir(), { kubeconfig: "/no/such/kubeconfig" })).toEqual({
      source: "none",
      error: expect.stringContaining("/no/such/kubeconfig"),
    });
  });
});

describe("with the API", () => {
  test("uses its pods, whatever directories kubelet still has", async () => {
    const root = fill(tempDir(), { "var/lib/kubelet/pods/11111111-2222-3333-4444-555555555555/volumes/.keep": "" });
    const { url } = await rig.serve({ [PODS]: () => ({ body: listOf([podObject({ name: "web-1", uid: UID })]) }) });
    fill(root, { kubeconfig: kubeconfigFor(url) });

    expect(await readHere(root, { kubeconfig: `${root}/kubeconfig` })).toEqual({
      source: "api",
      nodeName: "n1",
      pods: [{ namespace: "default", name: "web-1", uid: UID, phase: "Running", terminating: false, ignored: false }],
      holds: { paused: false, node: false, namespaces: [] },
    });
  });

  test("uses kubelet's directory for static pods without a mirror pod yet", async () => {
    const root = fill(tempDir(), { [`var/lib/kubelet/pods/${STATIC_UID}/containers/.keep`]: "" });
    const { url } = await rig.serve();
    fill(root, { kubeconfig: kubeconfigFor(url) });

    const kubernetes = await readHere(root, { kubeconfig: `${root}/kubeconfig` });

    expect(kubernetes.source === "api" && kubernetes.pods.map(({ uid }) => uid)).toEqual(["310e3cd6", STATIC_UID]);
  });

  test("returns the annotations of node and namespaces", async () => {
    const root = tempDir();
    const marked = { metadata: { name: "lab", labels: { "unghost.dev/ignore": "true" } } };
    const { url } = await rig.serve({
      [NODE]: () => ({ body: nodeObject("n1", { annotations: { "unghost.dev/paused": "true" } }) }),
      [NAMESPACES]: () => ({ body: listOf([marked]) }),
    });
    fill(root, { kubeconfig: kubeconfigFor(url) });

    expect(await readHere(root, { kubeconfig: `${root}/kubeconfig` })).toMatchObject({
      holds: { paused: true, node: false, namespaces: ["lab"] },
    });
  });

  test.each([
    ["the same machine", { "etc/machine-id": "3a6f\n" }, "api"],
    [
      "the same boot of a machine with a new id",
      { "etc/machine-id": "77\n", "proc/sys/kernel/random/boot_id": "b-1\n" },
      "api",
    ],
    ["a machine without an id", {}, "api"],
    ["another machine of the same name", { "etc/machine-id": "77\n" }, "kubelet"],
  ])("a node that is %s", async (_what, files, source) => {
    const root = fill(tempDir(), { ...KUBELET_POD, ...files });
    const { url } = await rig.serve();
    fill(root, { kubeconfig: kubeconfigFor(url) });

    const kubernetes = await readHere(root, { kubeconfig: `${root}/kubeconfig` });

    expect(kubernetes.source).toBe(source);
    if (source === "kubelet") expect(kubernetes.error).toContain("is another machine");
  });

  test.each([
    ["is another node", "n2", "kubelet", expect.stringContaining('that of the node "n2"')],
    ["is this node", "n1", "api", undefined],
  ])("a clone of this machine, where kubelet's certificate %s", async (_what, name, source, error) => {
    const { cert, key } = rig.ca.issue(`/O=system:nodes/CN=system:node:${name}`);
    const root = fill(tempDir(), { ...KUBELET_POD, "etc/machine-id": "3a6f\n" });
    const { url } = await rig.serve();
    const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
    fill(root, { kubeconfig: kubeconfigFor(url), "etc/kubernetes/kubelet.conf": kubeconfigFor(url, user) });

    const kubernetes = await readHere(root, { kubeconfig: `${root}/kubeconfig` });

    expect([kubernetes.source, kubernetes.error]).toEqual([source, error]);
  });

  test("uses a mirror of the API when there is one", async () => {
    const { url, asked } = await rig.serve();
    const pod = { namespace: "default", name: "mirrored", uid: UID, terminating: false, ignored: false };
    const node = { machineId: "3a6f", bootId: "", ignored: false, paused: false };
    const facts = { nodeName: "n1", pods: [pod], node, ignoredNamespaces: [], gaps: [] };
    const mirror = {
      ask: () => Promise.resolve({ kind: "answered", facts } as const),
      onChange: () => () => undefined,
      close: () => undefined,
    };
    const here = fill(tempDir(), { kubeconfig: kubeconfigFor(url), "etc/machine-id": "3a6f\n" });
    const elsewhere = fill(tempDir(), { kubeconfig: kubeconfigFor(url), "etc/machine-id": "77\n" });

    expect(await readHere(here, { kubeconfig: `${here}/kubeconfig`, mirror })).toMatchObject({
      source: "api",
      pods: [{ name: "mirrored" }],
    });
    expect(await readHere(elsewhere, { kubeconfig: `${elsewhere}/kubeconfig`, mirror })).toMatchObject({
      source: "none",
    });
    expect(asked).toEqual([]);
  });

  test("finds kubelet's credentials on the host, through the host's links", async () => {
    const kubelet = rig.ca.issue("/O=system:nodes/CN=system:node:n1");
    const { url } = await rig.serveWith(ordinary, rig.ca.issue("/CN=api", { san: "IP:127.0.0.1" }));
    const current = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    const root = fill(tempDir(), {
      "etc/kubernetes/kubelet.conf": kubeconfigFor(url, { "client-certificate": current, "client-key": current }),
      "var/lib/kubelet/pki/kubelet-client-2026.pem": `${kubelet.cert}${kubelet.key}`,
    });
    symlinkSync("/var/lib/kubelet/pki/kubelet-client-2026.pem", `${root}${current}`);

    expect(await readHere(root)).toMatchObject({ source: "api", pods: [{ name: "web-1" }] });
  });
});
