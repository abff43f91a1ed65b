/** Address, TLS settings and credentials of an API server. */
export interface ApiAccess {
  readonly server: URL;
  readonly tls: ApiTls;
  readonly token?: string;
  /** The source of the credentials, for messages. */
  readonly from: string;
  readonly certificate?: ClientCertificate;
}

export interface ApiTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
  readonly insecure: boolean;
}

export interface ClientCertificate {
  readonly expiresAt: Date;
  /** Set for a kubelet's own credentials: the node name in the cluster, which may differ from the host name. */
  readonly node?: string;
}

/**
 * Any holder of the bearer token can act as unghost: it is sent only to a server with a verified certificate, never over
 * plain HTTP, and never with verification disabled.
 */
export function isTokenSafe({ server, tls }: Pick<ApiAccess, "server" | "tls">): boolean {
  return server.protocol === "https:" && !tls.insecure;
}

/**
 * The content of a file. The caller decides how the path is resolved and how much is read, because the host may be
 * mounted at another path.
 */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly reason: string };

export type ReadText = (path: string) => FileText;
