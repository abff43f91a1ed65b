/** How to reach an API server, and with which identity. */
export interface ApiAccess {
  readonly server: URL;
  readonly tls: ApiTls;
  readonly token?: string;
  /** Where this was read, for people. */
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
  /** Set when it is a kubelet's own: then this is what the cluster calls its node, whatever the machine is called. */
  readonly node?: string;
}

/**
 * A bearer token is all that somebody needs to be us: it goes only to a server whose certificate was verified, never
 * over plain HTTP, and never where the verification is switched off.
 */
export function isTokenSafe({ server, tls }: Pick<ApiAccess, "server" | "tls">): boolean {
  return server.protocol === "https:" && !tls.insecure;
}

/** The content of a file. The caller decides how it is found and how much is read: the host may be mounted elsewhere. */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly reason: string };

export type ReadText = (path: string) => FileText;
