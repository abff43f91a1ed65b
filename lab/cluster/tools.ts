import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { cached } from "../cache.ts";
import { type CommandOptions, runOrThrow } from "../command.ts";
import { unpackDebianPackages } from "../debian-packages.ts";
import { KUBERNETES, type KubernetesVersion } from "../runtimes.ts";
import { definedEnv, findGo, goBuild, type Unavailable, whyNoRealNode } from "../tools.ts";

/** The programs of a cluster. Built or unpacked into the lab's cache; nothing is installed on the machine. */
export interface ClusterTools {
  readonly available: true;
  /** kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl. */
  readonly kubernetesDir: string;
  readonly etcd: string;
}

const MODULE = "k8s.io/kubernetes";
const COMMANDS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];
/** Ten minutes on two idle cores. */
const BUILD_MS = 3_600_000;
/** Modules of the Kubernetes repository itself: required as v0.0.0 and released as v0.<minor>.<patch>. */
const STAGING = /^\s+(k8s\.io\/[a-z0-9-]+) v0\.0\.0(?:\s|$)/gm;

export async function ensureClusterTools(
  version: KubernetesVersion = KUBERNETES[0],
): Promise<ClusterTools | Unavailable> {
  const notHere = whyNoRealNode();
  if (notHere !== undefined) return { available: false, reason: notHere };
  const go = findGo();
  if (go === undefined)
    return { available: false, reason: `Kubernetes ${version} is built with go, and no go was found on this machine` };
  try {
    const etcdRoot = await cached("etcd", (dir) => unpackDebianPackages(["etcd-server"], dir));
    const kubernetesDir = await cached(`kubernetes-v${version}`, (dir) => buildKubernetes(go, version, dir));
    return { available: true, kubernetesDir, etcd: join(etcdRoot, "usr/bin/etcd") };
  } catch (error) {
    return { available: false, reason: `the cluster's programs could not be made: ${(error as Error).message}` };
  }
}

/** Charts are installed with both. */
export type HelmMajor = 3 | 4;
const HELM: Readonly<Record<HelmMajor, string>> = { 3: "3.22.0", 4: "4.3.1" };

export async function ensureHelm(major: HelmMajor = 4): Promise<string> {
  const built = await goBuild("helm", `helm.sh/helm/v${major}`, `v${HELM[major]}`, ["cmd/helm"]);
  if (typeof built !== "string") throw new Error(built.reason);
  return join(built, "helm");
}

/** As requirements of an empty module, with each staging module replaced by its release. */
async function buildKubernetes(go: string, version: KubernetesVersion, dir: string): Promise<void> {
  const source = join(dir, "source");
  await mkdir(source);
  const env = { ...definedEnv(), GOFLAGS: "-mod=mod -modcacherw -buildvcs=false", CGO_ENABLED: "0" };
  const options = { cwd: source, env, timeoutMs: BUILD_MS };
  await runOrThrow([go, "mod", "init", "unghost.lab/build"], options);
  const staging = await stagingModules(go, version, options);
  const release = version.replace(/^1\./, "0.");
  const replaced = staging.map((module) => `-replace=${module}=${module}@v${release}`);
  await runOrThrow([go, "mod", "edit", ...replaced, `-require=${MODULE}@v${version}`], options);
  await runOrThrow([go, "get", `${MODULE}@v${version}`], options);
  const packages = COMMANDS.map((command) => `${MODULE}/cmd/${command}`);
  // The components compare their versions with each other and with the API's; without them, they report v0.0.0.
  const [major = "", minor = ""] = version.split(".");
  const stamp = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  const stamps = Object.entries(stamp).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  await runOrThrow(
    [go, "build", "-trimpath", "-ldflags", `-s -w ${stamps.join(" ")}`, "-o", `${dir}/`, ...packages],
    options,
  );
  await rm(source, { recursive: true });
}

async function stagingModules(
  go: string,
  version: KubernetesVersion,
  options: CommandOptions,
): Promise<readonly string[]> {
  const { stdout } = await runOrThrow([go, "mod", "download", "-json", `${MODULE}@v${version}`], options);
  const { GoMod } = JSON.parse(stdout) as { readonly GoMod: string };
  const names = [...(await readFile(GoMod, "utf8")).matchAll(STAGING)].map(([, name = ""]) => name);
  if (names.length === 0) throw new Error(`${GoMod} requires no staging module at v0.0.0`);
  return [...new Set(names)];
}
