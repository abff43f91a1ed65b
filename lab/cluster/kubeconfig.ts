import type { KeyPair } from "../stub-api/certificates.ts";

/** How a client shows who it is. */
export type Credentials = KeyPair | { readonly token: string };

/** A kubeconfig with embedded credentials, as JSON, which is valid YAML. */
export function kubeconfig(server: string, authority: string, credentials: Credentials): string {
  const user =
    "token" in credentials
      ? { token: credentials.token }
      : { "client-certificate-data": base64(credentials.cert), "client-key-data": base64(credentials.key) };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster: { server, "certificate-authority-data": base64(authority) } }],
    users: [{ name: "lab", user }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
    "current-context": "lab",
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
