import type { ApiAccess, ReadText } from "./access.ts";
import { KubeError } from "./kube-error.ts";
import { SERVICE_ACCOUNT } from "./places.ts";

/** The credentials that every pod is given. The token is read again each time: kubelet replaces it every hour or so. */
export function inClusterAccess(host: string, port: string, readText: ReadText): ApiAccess {
  const text = (name: string): string => {
    const file = readText(`${SERVICE_ACCOUNT}/${name}`);
    if (file.kind === "text") return file.text.trim();
    const why = file.kind === "missing" ? "is missing" : file.reason;
    throw new KubeError("unusable", `the service account's ${SERVICE_ACCOUNT}/${name} ${why}`);
  };
  const address = host.includes(":") ? `[${host}]` : host;
  const url = `https://${address}:${port}`;
  if (!URL.canParse(url)) {
    throw new KubeError("unusable", `KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make no address: ${url}`);
  }
  return {
    server: new URL(url),
    tls: { ca: text("ca.crt"), insecure: false },
    token: text("token"),
    from: "the pod's service account",
  };
}
