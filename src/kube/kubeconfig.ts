import { dirname, isAbsolute, join } from "node:path";
import * as v from "valibot";
import { KUBELET_KUBECONFIGS } from "../host/distributions.ts";
import type { ApiAccess, ApiTls, ClientCertificate, ReadText } from "./access.ts";
import { KubeError } from "./errors.ts";

const text = v.nullish(v.string());

const ClusterSchema = v.object({
  server: text,
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": v.nullish(v.boolean()),
  "tls-server-name": text,
  "proxy-url": text,
});

const UserSchema = v.object({
  "client-certificate": text,
  "client-certificate-data": text,
  "client-key": text,
  "client-key-data": text,
  token: text,
  tokenFile: text,
  username: text,
  as: text,
  exec: v.nullish(v.object({ command: text })),
  "auth-provider": v.nullish(v.object({ name: text })),
});

const KubeconfigSchema = v.object({
  "current-context": text,
  contexts: v.nullish(v.array(v.object({ name: v.string(), context: v.object({ cluster: text, user: text }) }))),
  clusters: v.nullish(v.array(v.object({ name: v.string(), cluster: ClusterSchema }))),
  users: v.nullish(v.array(v.object({ name: v.string(), user: v.nullish(UserSchema) }))),
});

type Kubeconfig = v.InferOutput<typeof KubeconfigSchema>;
type Cluster = v.InferOutput<typeof ClusterSchema>;
type User = v.InferOutput<typeof UserSchema>;

/** The cluster and the user of a kubeconfig's current context. An error names each field that prevents its use. */
export async function kubeconfigAccess(
  path: string,
  readText: ReadText,
  caller: Caller = { uid: process.geteuid?.(), env: process.env },
): Promise<ApiAccess> {
  const file = readText(path);
  if (file.kind !== "text") {
    throw new KubeError(
      "unusable",
      file.kind === "missing" ? `there is no kubeconfig ${path}` : `the kubeconfig ${path} ${file.reason}`,
    );
  }
  const where: Where = { path, readText };
  const { cluster, user } = currentContext(await parse(file.text, path), path);
  refuseUnsupported(cluster, user, path);
  const server = cluster.server ?? "";
  if (!URL.canParse(server) || !/^https?:\/\//.test(server)) {
    throw unusable(path, server === "" ? "its cluster has no server" : `its server "${server}" is no http(s) address`);
  }
  const tls = readTls(cluster, user, where);
  if (server.startsWith("https:") && tls.ca === undefined && !tls.insecure) refuseAddedTrust(caller, path);
  const token = readToken(user, where);
  const certificate =
    tls.cert === undefined ? undefined : readClientCertificate(tls.cert, `the client certificate of ${path}`);
  return { server: new URL(server), tls, from: path, token, certificate };
}

interface Where {
  readonly path: string;
  readonly readText: ReadText;
}

function unusable(path: string, why: string): KubeError {
  return new KubeError("unusable", `the kubeconfig ${path} cannot be used: ${why}`);
}

async function parse(source: string, path: string): Promise<Kubeconfig> {
  const result = v.safeParse(KubeconfigSchema, await parseYaml(source, path));
  if (result.success) return result.output;
  const [issue] = result.issues;
  const place = v.getDotPath(issue);
  const seen = `expected ${issue.expected ?? "something else"} and found ${issue.received}`;
  throw unusable(path, place === null ? `it is no kubeconfig (${seen})` : `at ${place}, ${seen}`);
}

async function parseYaml(source: string, path: string): Promise<unknown> {
  // Loaded only when there is a kubeconfig to read.
  const { parse: parseText } = await import("yaml");
  try {
    return parseText(source, { prettyErrors: true, logLevel: "error" });
  } catch (error) {
    const [firstLine = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw unusable(path, `it is not YAML: ${firstLine.replace(/:$/, "")}`);
  }
}

function currentContext(config: Kubeconfig, path: string): { readonly cluster: Cluster; readonly user: User } {
  const name = config["current-context"];
  if (!name) throw unusable(path, "it names no current-context");
  const context = config.contexts?.find((one) => one.name === name)?.context;
  if (context === undefined) throw unusable(path, `its current-context "${name}" is not among its contexts`);
  const cluster = config.clusters?.find((one) => one.name === context.cluster)?.cluster;
  if (cluster === undefined) throw unusable(path, `it has no cluster "${context.cluster ?? ""}"`);
  // A context without a user is anonymous, as behind `kubectl proxy`.
  if (!context.user) return { cluster, user: {} };
  const entry = config.users?.find((one) => one.name === context.user);
  if (entry === undefined) throw unusable(path, `it has no user "${context.user}"`);
  return { cluster, user: entry.user ?? {} };
}

function refuseUnsupported(cluster: Cluster, user: User, path: string): void {
  const instead = "unghost supports a client certificate, a token or a tokenFile";
  if (user.exec) {
    const program = user.exec.command ? ` "${user.exec.command}"` : "";
    throw unusable(
      path,
      `it gets its credentials from the program${program} (exec), which unghost does not run; ${instead}`,
    );
  }
  if (user["auth-provider"]) throw unusable(path, `it uses an auth-provider, which is not supported; ${instead}`);
  if (user.username) throw unusable(path, `it uses a user name and password, which is not supported; ${instead}`);
  if (user.as) throw unusable(path, `it impersonates "${user.as}", which is not supported; ${instead}`);
  if (cluster["proxy-url"]) throw unusable(path, "it goes through a proxy (proxy-url), which is not supported");
}

function readTls(cluster: Cluster, user: User, where: Where): ApiTls {
  const ca = pem("certificate-authority", cluster, where);
  const cert = pem("client-certificate", user, where);
  const key = pem("client-key", user, where);
  if ((cert === undefined) !== (key === undefined)) {
    throw unusable(
      where.path,
      `it has a client ${cert === undefined ? "key without its certificate" : "certificate without its key"}`,
    );
  }
  const serverName = cluster["tls-server-name"] || undefined;
  return { insecure: cluster["insecure-skip-tls-verify"] ?? false, ca, cert, key, serverName };
}

/** Who runs this process, and the environment that it was started with. */
export interface Caller {
  readonly uid: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Without a CA of its own a connection trusts the engine's list and what these add to it. */
const ADDS_TRUST = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/** The caller of a program that runs as root, as through sudo, must not choose the servers that get root's token. */
function refuseAddedTrust({ uid, env }: Caller, path: string): void {
  const name = ADDS_TRUST.find((one) => env[one]);
  if (uid !== 0 || name === undefined) return;
  throw unusable(
    path,
    `its cluster names no certificate-authority, and ${name} in the environment would decide which servers are trusted; add the certificate-authority, or unset ${name}`,
  );
}

type PemKey = "certificate-authority" | "client-certificate" | "client-key";

/** Embedded data takes precedence over a file, as in kubectl. */
function pem<Key extends PemKey>(
  key: Key,
  section: { readonly [name in Key | `${Key}-data`]?: string | null | undefined },
  where: Where,
): string | undefined {
  const data = section[`${key}-data`];
  if (data) {
    const decoded = Buffer.from(data, "base64").toString("utf8");
    if (!decoded.includes("-----BEGIN ")) throw unusable(where.path, `its ${key}-data is no PEM in base64`);
    return decoded;
  }
  const file = section[key];
  if (!file) return undefined;
  const content = readNamed(key, file, where);
  if (!content.includes("-----BEGIN ")) throw unusable(where.path, `its ${key} ${file} holds no PEM`);
  return content;
}

/** A token file takes precedence over a token, because it is the one that is renewed. */
function readToken(user: User, where: Where): string | undefined {
  if (!user.tokenFile) return user.token || undefined;
  return readNamed("tokenFile", user.tokenFile, where).trim() || undefined;
}

function readNamed(key: string, named: string, { path, readText }: Where): string {
  const full = isAbsolute(named) ? named : join(dirname(path), named);
  const file = readText(full);
  if (file.kind === "text") return file.text;
  throw unusable(path, `its ${key} ${full} ${file.kind === "missing" ? "is missing" : file.reason}`);
}

/** The certificate subject of every kubelet contains its node name. */
const NODE_SUBJECT = /^CN=system:node:(.+)$/m;

function readClientCertificate(certificate: string, place: string): ClientCertificate {
  try {
    const { X509Certificate } = process.getBuiltinModule("node:crypto");
    const { subject, validTo } = new X509Certificate(certificate);
    const node = NODE_SUBJECT.exec(subject)?.[1];
    return { expiresAt: new Date(validTo), node };
  } catch (error) {
    throw new KubeError("unusable", `${place} is not a certificate`, error);
  }
}

/** The mount path of a pod's service account. */
export const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Which credentials to use; found without loading the client. */
export type CredentialsPlace =
  | { readonly kind: "kubeconfig"; readonly path: string }
  | { readonly kind: "service-account"; readonly host: string; readonly port: string }
  | { readonly kind: "kubelet"; readonly path: string };

export interface Surroundings {
  /** `--kubeconfig`. */
  readonly kubeconfig: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isThere: (path: string) => boolean;
  /** Like isThere, for paths of the node. */
  readonly isOnHost: (path: string) => boolean;
  readonly read: (path: string) => string;
}

/**
 * The requested kubeconfig comes first, then the pod's ServiceAccount, then the node's credentials. The ServiceAccount
 * `default` is assigned to pods without one (`kubectl debug node`): there the node's credentials come first. The
 * KUBECONFIG of the user who runs unghost is ignored on purpose: it may belong to another cluster, and then every pod
 * of this node would be reported as gone.
 */
export function findCredentials(surroundings: Surroundings): CredentialsPlace | undefined {
  const { kubeconfig, env, isThere, isOnHost } = surroundings;
  if (kubeconfig !== undefined) return { kind: "kubeconfig", path: kubeconfig };
  const host = env["KUBERNETES_SERVICE_HOST"];
  const path = KUBELET_KUBECONFIGS.find(isOnHost);
  if (host && isThere(TOKEN) && (path === undefined || !isDefaultAccount(surroundings.read(TOKEN)))) {
    return { kind: "service-account", host, port: env["KUBERNETES_SERVICE_PORT"] || "443" };
  }
  return path === undefined ? undefined : { kind: "kubelet", path };
}

const TOKEN = `${SERVICE_ACCOUNT}/token`;

/** Reads the token's own claim without verification. It only decides between our credentials. */
function isDefaultAccount(token: string): boolean {
  try {
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { sub?: unknown };
    return /^system:serviceaccount:[^:]+:default$/.test(String(claims.sub));
  } catch {
    return false;
  }
}
