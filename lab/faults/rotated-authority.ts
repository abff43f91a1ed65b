import { mkdtempSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { useMultusWith } from "../multus.ts";
import type { LabNode } from "../node.ts";
import { makeAuthority } from "../stub-api/certificates.ts";
import { API_PORT, STUB_CA, startStubApi } from "../stub-api.ts";
import type { Injected } from "./injected.ts";

const KUBECONFIG = "/etc/cni/net.d/multus.d/multus.kubeconfig";
/** Where kubeadm keeps the cluster's own. */
const CLUSTER_CA = "/etc/kubernetes/pki/ca.crt";

/** The cluster's authority was replaced, and multus' kubeconfig still has the former one. */
export async function rotatedAuthority(node: LabNode): Promise<Injected & { readonly path: string }> {
  await startStubApi(node, "valid");
  await node.writeFile(CLUSTER_CA, await readFile(node.path(STUB_CA), "utf8"));
  const dir = mkdtempSync(join(tmpdir(), "lab-former-"));
  try {
    await trustAuthority(node, makeAuthority(dir, "former").cert);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  await useMultusWith(KUBECONFIG, node);
  return { fault: "rotated-authority", did: `left a former authority in ${KUBECONFIG}`, path: KUBECONFIG };
}

/** What the add-on does when its pod starts again: multus reads its kubeconfig at every call. */
export async function writeKubeconfigAgain(node: LabNode): Promise<void> {
  await trustAuthority(node, await readFile(node.path(STUB_CA), "utf8"));
}

function trustAuthority(node: LabNode, certificate: string): Promise<void> {
  const lines = [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    "- name: local",
    "  cluster:",
    `    server: https://127.0.0.1:${API_PORT}`,
    `    certificate-authority-data: ${Buffer.from(certificate).toString("base64")}`,
    "users:",
    "- name: multus",
    "  user:",
    "    token: lab",
    "contexts:",
    "- name: multus-context",
    "  context:",
    "    cluster: local",
    "    user: multus",
    "current-context: multus-context",
  ];
  return node.writeFile(KUBECONFIG, `${lines.join("\n")}\n`);
}
