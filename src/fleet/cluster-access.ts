import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Cluster, Context, KubeConfig, User } from "@kubernetes/client-node";
import { describeError } from "../host/source.ts";
import type { ApiAccess } from "../kube/access.ts";
import { KubeError } from "../kube/errors.ts";

/** What of kubectl's flags chooses the cluster and the user. */
export interface ClusterChoice {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

export interface ChosenCluster {
  readonly access: ApiAccess;
  /** Of the context. */
  readonly namespace: string;
}

interface Loaded {
  readonly config: KubeConfig;
  readonly from: string;
}

/**
 * Access as kubectl would have it: merged files, exec credential plugins, OIDC, client certificates and proxies, by
 * Kubernetes' own client for Node.js. Only for an operator's machine: on a node, such a plugin would run as root.
 */
export async function chooseCluster(choice: ClusterChoice, env: Env): Promise<ChosenCluster> {
  // Loaded on demand: the commands on a node never need it.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const { config, from } = load(KubeConfig, choice.kubeconfig, env);
  if (choice.context !== undefined) config.setCurrentContext(choice.context);
  const context = config.getContextObject(config.getCurrentContext());
  const cluster = config.getCurrentCluster();
  if (context === null || cluster === null) throw new KubeError("unusable", contextProblem(config, from));
  if (!URL.canParse(cluster.server)) throw new KubeError("unusable", `${from}: the cluster has no valid server`);
  const user = config.getCurrentUser() ?? { name: context.user };
  const server = new URL(cluster.server);
  // Set again with what kubectl takes from elsewhere.
  config.clusters = [{ ...cluster, ...proxied(cluster, server, env) }];
  config.users = [withExecInfo(user)];
  return { access: await accessOf(config, { server, from, choice }), namespace: context.namespace ?? "default" };
}

/** For completion. */
export async function contextNames(kubeconfig: string | undefined, env: Env): Promise<readonly string[]> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const { config } = load(KubeConfig, kubeconfig, env);
  return config.getContexts().map(({ name }) => name);
}

function load(Config: new () => KubeConfig, given: string | undefined, env: Env): Loaded {
  const listed = env["KUBECONFIG"]?.split(delimiter).filter((path) => path !== "") ?? [];
  const [files, from] =
    given !== undefined
      ? [[given], "--kubeconfig"]
      : listed.length > 0
        ? [listed.filter((path) => existsSync(path)), "KUBECONFIG"]
        : [
            defaultConfigs(env)
              .filter((path) => existsSync(path))
              .slice(0, 1),
            "~/.kube/config",
          ];
  if (files.length > 0) return { config: merged(files.map((path) => readConfig(Config, path))), from };
  if (env["KUBERNETES_SERVICE_HOST"]) {
    const config = new Config();
    config.loadFromCluster();
    return { config, from: "the pod's service account" };
  }
  const where = listed.length > 0 ? `none of the files in KUBECONFIG exists` : `there is no ~/.kube/config`;
  throw new KubeError("no-credentials", `${where}: name a kubeconfig with --kubeconfig or KUBECONFIG`);
}

/** On Windows, kubectl takes the first home directory with a kubeconfig: HOME, HOMEDRIVE with HOMEPATH, USERPROFILE. */
function defaultConfigs(env: Env): readonly string[] {
  const { HOME, HOMEDRIVE, HOMEPATH, USERPROFILE } = env;
  const drive = HOMEDRIVE && HOMEPATH ? HOMEDRIVE + HOMEPATH : undefined;
  const homes = process.platform === "win32" ? [HOME, drive, USERPROFILE] : [homedir()];
  return homes.flatMap((home) => (home ? [join(home, ".kube", "config")] : []));
}

function readConfig(Config: new () => KubeConfig, path: string): KubeConfig {
  const config = new Config();
  try {
    config.loadFromFile(path);
    return config;
  } catch (error) {
    throw new KubeError("unusable", `the kubeconfig ${path} cannot be used: ${describeError(error)}`, error);
  }
}

/** As kubectl does it: of entries with the same name, and of the current contexts, the first one counts. */
function merged(configs: readonly KubeConfig[]): KubeConfig {
  const [first] = configs;
  if (first === undefined) throw new KubeError("no-credentials", "there is no kubeconfig");
  const firstOf = <Entry extends Cluster | Context | User>(entries: readonly Entry[]): Entry[] => [
    ...new Map(entries.toReversed().map((entry) => [entry.name, entry])).values(),
  ];
  first.clusters = firstOf(configs.flatMap(({ clusters }) => clusters));
  first.contexts = firstOf(configs.flatMap(({ contexts }) => contexts));
  first.users = firstOf(configs.flatMap(({ users }) => users));
  first.setCurrentContext(configs.map((config) => config.getCurrentContext()).find(Boolean) ?? "");
  return first;
}

function contextProblem(config: KubeConfig, from: string): string {
  const name = config.getCurrentContext();
  const known = config.getContexts().map((context) => context.name);
  const choose = known.length === 0 ? "it has no context" : `choose one with --context: ${known.join(", ")}`;
  if (!name) return `${from}: no context is set; ${choose}`;
  if (!known.includes(name)) return `${from}: there is no context "${name}"; ${choose}`;
  return `${from}: the context "${name}" names a cluster that does not exist`;
}

/** Without a proxy of its own, a cluster is reached through the one of the environment. */
function proxied(cluster: Cluster, server: URL, env: Env): Pick<Cluster, "proxyUrl" | "skipTLSVerify"> {
  const isTls = server.protocol === "https:";
  const proxy = isTls ? (env["HTTPS_PROXY"] ?? env["https_proxy"]) : (env["HTTP_PROXY"] ?? env["http_proxy"]);
  const isDirect = proxy === undefined || proxy === "" || isExcepted(server, env["NO_PROXY"] ?? env["no_proxy"] ?? "");
  return {
    proxyUrl: cluster.proxyUrl ?? (isDirect ? undefined : proxy),
    // Required for plain HTTP, where there is nothing to verify; no token is sent there.
    skipTLSVerify: cluster.skipTLSVerify || !isTls,
  };
}

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isExcepted({ hostname }: URL, noProxy: string): boolean {
  if (LOOPBACK.test(hostname)) return true;
  return noProxy
    .split(",")
    .map((name) => name.trim().replace(/^\*?\./, ""))
    .some((name) => name !== "" && (name === "*" || hostname === name || hostname.endsWith(`.${name}`)));
}

/** Some plugins require it, and are asked for nothing that needs a terminal. */
function withExecInfo(user: User): User {
  const { exec } = user;
  if (exec === undefined || exec === null) return user;
  const info = { apiVersion: exec.apiVersion, kind: "ExecCredential", spec: { interactive: false } };
  const own = { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) };
  return { ...user, exec: { ...exec, env: [own, ...(exec.env ?? [])] } };
}

interface AccessParts {
  readonly server: URL;
  readonly from: string;
  readonly choice: ClusterChoice;
}

interface AppliedOptions {
  readonly ca?: unknown;
  readonly cert?: unknown;
  readonly key?: unknown;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
  readonly auth?: string;
  readonly agent?: ApiAccess["agent"];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A plugin that waits for a browser or a smart card may need that long, and no longer. */
const CREDENTIALS_MS = 60_000;

async function accessOf(config: KubeConfig, { server, from, choice }: AccessParts): Promise<ApiAccess> {
  const applied: AppliedOptions = {};
  await withDeadline(config.applyToHTTPSOptions(applied), from);
  const { Authorization: authorization = "", ...headers } = applied.headers ?? {};
  const [, token] = /^Bearer (.+)$/.exec(authorization) ?? [];
  const insecure = applied.rejectUnauthorized === false;
  const isVerified = server.protocol === "https:" && !insecure;
  return {
    server,
    tls: {
      ca: textOf(applied.ca),
      cert: textOf(applied.cert),
      key: textOf(applied.key),
      serverName: applied.servername,
      insecure,
    },
    token,
    from,
    agent: applied.agent,
    headers: { ...headers, ...(isVerified ? basicAuthorization(applied) : {}), ...impersonation(choice) },
  };
}

function basicAuthorization({ auth }: AppliedOptions): Readonly<Record<string, string>> {
  return auth === undefined ? {} : { authorization: `Basic ${btoa(auth)}` };
}

function impersonation({
  as: user,
  asGroup = [],
}: ClusterChoice): Readonly<Record<string, string | readonly string[]>> {
  if (user === undefined) {
    if (asGroup.length > 0) throw new KubeError("unusable", "--as-group needs --as");
    return {};
  }
  return { "Impersonate-User": user, ...(asGroup.length === 0 ? {} : { "Impersonate-Group": asGroup }) };
}

function textOf(value: unknown): string | undefined {
  if (Buffer.isBuffer(value)) return value.toString("utf8");
  return typeof value === "string" && value !== "" ? value : undefined;
}

async function withDeadline(applying: Promise<void>, from: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const seconds = CREDENTIALS_MS / 1000;
    const error = new KubeError("timeout", `${from}: the credential plugin did not end within ${seconds} s`);
    timer = setTimeout(() => reject(error), CREDENTIALS_MS);
  });
  try {
    await Promise.race([applying, late]);
  } catch (error) {
    if (error instanceof KubeError) throw error;
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw new KubeError("unusable", `${from}: getting credentials failed: ${reason}`, error);
  } finally {
    clearTimeout(timer);
  }
}
