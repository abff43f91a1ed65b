import type { ClientCertificate } from "./access.ts";
import { KubeError } from "./kube-error.ts";

/** Every kubelet is known to its cluster by this name and its node's. */
const NODE_SUBJECT = /^CN=system:node:(.+)$/m;

export function readClientCertificate(pem: string, place: string): ClientCertificate {
  try {
    const { X509Certificate } = process.getBuiltinModule("node:crypto");
    const { subject, validTo } = new X509Certificate(pem);
    const node = NODE_SUBJECT.exec(subject)?.[1];
    return { expiresAt: new Date(validTo), ...(node === undefined ? {} : { node }) };
  } catch (error) {
    throw new KubeError("unusable", `${place} is not a certificate`, error);
  }
}
