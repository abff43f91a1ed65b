import { SERVING_CERTIFICATES } from "../distributions/index.ts";
import { resolveOnHost } from "../host/host-paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { provePath } from "../host/trusted-path.ts";
import type { ServingCertificate } from "../kube/kubelet-pods.ts";
import { configOf, flagOf, type RunningKubelet } from "./kubelet-process.ts";

const DEFAULT_CERT_DIR = "/var/lib/kubelet/pki";
/** Signed by the cluster (serverTLSBootstrap), and self-signed. */
const IN_CERT_DIR = ["kubelet-server-current.pem", "kubelet.crt"];

/** What the kubelet shows on its port, read from where it keeps it: files that only root can have written. */
export function readServingCertificate(kubelet: RunningKubelet, root: string): ServingCertificate | undefined {
  const { argv } = kubelet;
  const named = flagOf(argv, "tls-cert-file") ?? settingOf(configOf(argv, root), "tlsCertFile");
  const certDir = flagOf(argv, "cert-dir") ?? DEFAULT_CERT_DIR;
  const places =
    named === undefined ? [...IN_CERT_DIR.map((name) => `${certDir}/${name}`), ...SERVING_CERTIFICATES] : [named];
  for (const place of places) {
    if (provePath(root, place).kind !== "trusted") continue;
    const file = readRegularFile(resolveOnHost(root, place, "follow"));
    const certificate = file.kind === "content" ? parse(file.text) : undefined;
    if (certificate !== undefined) return certificate;
  }
  return undefined;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The file may hold the key, too, which stays where it is. */
function parse(text: string): ServingCertificate | undefined {
  const [leaf, ...others] = text.match(CERTIFICATES) ?? [];
  if (leaf === undefined) return undefined;
  const name = nameIn(leaf);
  return { pem: [leaf, ...others].join("\n"), ...(name === undefined ? {} : { name }) };
}

function nameIn(leaf: string): string | undefined {
  try {
    const { X509Certificate } = process.getBuiltinModule("node:crypto");
    return /DNS:([^,\s]+)/.exec(new X509Certificate(leaf).subjectAltName ?? "")?.[1];
  } catch {
    // Not a certificate after all: the verification against it fails with an error.
    return undefined;
  }
}

/** A string at the top level of the file, YAML or JSON of one setting a line. */
export function settingOf(config: string | undefined, setting: string): string | undefined {
  if (config === undefined) return undefined;
  const file = readRegularFile(config);
  if (file.kind !== "content") return undefined;
  return new RegExp(`^\\s*"?${setting}"?:[ \\t]*["']?([^"'#,\\s]+)`, "m").exec(file.text)?.[1];
}
