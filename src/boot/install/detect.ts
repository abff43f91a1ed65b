import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { RUNTIME_UNITS, type RuntimeUnit, type RuntimeUnitName } from "../../host/distributions.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { errorCode } from "../../host/source.ts";
import { type Host, type RuntimeService, runtimeUnit, type ServiceManager } from "./hook.ts";

/** Read access to the host's files. Paths are the host's. */
export interface HostFiles {
  kind(path: string): "absent" | "file" | "directory" | "link" | "other";
  /** Follows links like the host. Undefined if it does not exist or is not a regular file. */
  read(path: string): string | undefined;
  /** The target of a link; undefined if it is not a link. */
  link(path: string): string | undefined;
  /** Sorted; empty if the directory does not exist. */
  names(directory: string): readonly string[];
}

export function hostFiles(root: string): HostFiles {
  const kept = (path: string): string => resolveOnHost(root, path, "keep");
  const followed = (path: string): string => resolveOnHost(root, path, "follow");
  const stats = (path: string) => unlessAbsent(() => lstatSync(path), undefined);
  return {
    kind: (path) => {
      const found = stats(kept(path));
      if (found === undefined) return "absent";
      if (found.isFile()) return "file";
      if (found.isDirectory()) return "directory";
      return found.isSymbolicLink() ? "link" : "other";
    },
    read: (path) => {
      const file = readRegularFile(followed(path));
      if (file.kind === "closed") throw new Error(`${path} ${file.reason}`);
      return file.kind === "content" ? file.text : undefined;
    },
    link: (path) => {
      const place = kept(path);
      return stats(place)?.isSymbolicLink() ? readlinkSync(place) : undefined;
    },
    names: (directory) => unlessAbsent(() => readdirSync(followed(directory)).sort(), []),
  };
}

/** Absence is a result; permission denied is an error. */
function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read();
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return absent;
    throw thrown;
  }
}

/** In systemd's order: /etc hides the files of packages. */
export const UNIT_DIRS = [
  "/etc/systemd/system",
  "/usr/local/lib/systemd/system",
  "/usr/lib/systemd/system",
  "/lib/systemd/system",
] as const;
export const INIT_DIR = "/etc/init.d";

const FAMILIES = ["k3s", "rke2", "k0s"] as const;
type Family = (typeof FAMILIES)[number];
/** What an operator may name instead of the detection. */
export const CHOICES = [...FAMILIES, ...RUNTIME_UNITS.map(({ name }) => name), "nixos", "talos"] as const;
export type Choice = Family | RuntimeUnitName | "nixos" | "talos";

export type Detection =
  | { readonly kind: "found"; readonly host: Host }
  | { readonly kind: "none"; readonly searched: string }
  | { readonly kind: "several"; readonly names: readonly RuntimeUnitName[] };

/** Detects what runs Kubernetes here, from files alone: it must work in an image that was never booted. */
export function detect(files: HostFiles, chosen?: Choice): Detection {
  const manager = chosen === "talos" || chosen === "nixos" ? chosen : serviceManager(files);
  if (manager === "talos") return { kind: "found", host: { manager, services: [] } };
  const services = servicesOf(files, manager);
  const nothing = { kind: "none", searched: manager === "openrc" ? INIT_DIR : UNIT_DIRS.join(", ") } as const;
  if (isFamily(chosen)) {
    const wanted = services.filter(({ distribution }) => family(distribution) === chosen);
    const enabled = startedAtBoot(files, wanted);
    if (enabled.length > 1) return { kind: "several", names: enabled.map(({ distribution: { name } }) => name) };
    return enabled.length === 1 ? { kind: "found", host: { manager, services: enabled } } : nothing;
  }
  if (chosen !== undefined && chosen !== "nixos" && chosen !== "talos") {
    const wanted = services.filter((found) => found.distribution.name === chosen);
    return { kind: "found", host: { manager, services: wanted.length > 0 ? wanted : [asNamed(chosen)] } };
  }
  const picked = pick(files, startedAtBoot(files, services));
  if (picked.length > 0 && hasOneRuntime(picked)) return { kind: "found", host: { manager, services: picked } };
  if (picked.length > 0) return { kind: "several", names: picked.map(({ distribution: { name } }) => name) };
  // A NixOS configuration may be written before its k3s is.
  if (manager === "nixos") return { kind: "found", host: { manager, services: [asNamed("k3s-server")] } };
  return nothing;
}

/** The unit decides between server and agent. */
function isFamily(chosen: Choice | undefined): chosen is Family {
  return FAMILIES.some((name) => name === chosen);
}

function asNamed(name: RuntimeUnitName): RuntimeService {
  const known = runtimeUnit(name);
  return { distribution: known, service: known.service, seenAt: "named by you" };
}

function serviceManager(files: HostFiles): ServiceManager {
  const release = files.read("/etc/os-release") ?? files.read("/usr/lib/os-release") ?? "";
  const id = /^ID=["']?([\w.-]+)/m.exec(release)?.[1];
  if (id === "talos" || id === "nixos") return id;
  const there = (paths: readonly string[]): boolean => paths.some((path) => files.kind(path) !== "absent");
  // Some distributions have both; the one that can be process 1 decides.
  if (there(["/usr/lib/systemd/systemd", "/lib/systemd/systemd"])) return "systemd";
  return id === "alpine" || there(["/sbin/openrc-run", "/usr/sbin/openrc-run"]) ? "openrc" : "systemd";
}

/** What starts the runtime here; services of several runtimes if the files do not show which one is used. */
function pick(files: HostFiles, services: readonly RuntimeService[]): readonly RuntimeService[] {
  const embedded = services.filter(({ distribution: { kubelets } }) => kubelets.length === 0);
  if (embedded.length > 0) return embedded;
  // A containerd without a kubelet belongs to Docker or builds; it has no pods.
  const plain = services.filter(({ distribution: { name } }) => name === "containerd" || name === "cri-o");
  const snap = services.filter(({ distribution: { name } }) => name === "microk8s");
  if (snap.length > 0) return snap;
  if (plain.length < 2) return plain;
  const used = kubeletsRuntime(files);
  const decided = plain.filter(({ distribution: { name } }) => name === used);
  return decided.length > 0 ? decided : plain;
}

function hasOneRuntime(services: readonly RuntimeService[]): boolean {
  return new Set(services.map(({ distribution }) => family(distribution))).size === 1;
}

/** rke2 installs the units of server and agent on every host; the enabled one counts. */
function startedAtBoot(files: HostFiles, services: readonly RuntimeService[]): readonly RuntimeService[] {
  return services.filter((found) => {
    const rivals = services.filter((other) => family(other.distribution) === family(found.distribution));
    return isEnabled(files, found) || !rivals.some((other) => isEnabled(files, other));
  });
}

function isEnabled(files: HostFiles, { service }: RuntimeService): boolean {
  const places = [
    `/etc/systemd/system/multi-user.target.wants/${service}.service`,
    `/etc/runlevels/default/${service}`,
  ];
  return places.some((path) => files.kind(path) !== "absent");
}

/** Server and agent of one distribution never run on the same host. */
function family({ name }: RuntimeUnit): string {
  return name.split("-")[0] ?? name;
}

function servicesOf(files: HostFiles, manager: ServiceManager): readonly RuntimeService[] {
  const found = new Map<string, { readonly path: string; readonly text: string }>();
  const dirs = manager === "openrc" ? [INIT_DIR] : UNIT_DIRS;
  for (const dir of dirs) {
    for (const file of files.names(dir)) {
      const name = manager === "openrc" ? file : /^(.+)\.service$/.exec(file)?.[1];
      if (name === undefined || found.has(name)) continue;
      // A masked unit is a link to /dev/null: it hides the one below and is never started.
      found.set(name, { path: `${dir}/${file}`, text: files.read(`${dir}/${file}`) ?? "" });
    }
  }
  const started = [...found].filter(([, { text }]) => text !== "");
  const names = new Set(started.map(([name]) => name));
  return started.flatMap(([service, { path, text }]) => {
    const known = recognise(service, text);
    if (known === undefined) return [];
    const { kubelets } = known;
    return kubelets.every((kubelet) => names.has(kubelet)) || known.name === "microk8s"
      ? [{ distribution: known, service, seenAt: path }]
      : [];
  });
}

function recognise(service: string, text: string): RuntimeUnit | undefined {
  const exact = RUNTIME_UNITS.find((known) => known.service === service);
  if (exact !== undefined) return exact;
  // k3s may be installed under another name (INSTALL_K3S_NAME): then its command line identifies it.
  if (!service.startsWith("k3s")) return undefined;
  const plain = text.replace(/\\\n/g, " ");
  const role = /\/k3s["']?\s+["']?(server|agent)\b/.exec(plain) ?? /^command_args=["']?(server|agent)\b/m.exec(plain);
  if (role === null) return undefined;
  return runtimeUnit(role[1] === "agent" ? "k3s-agent" : "k3s-server");
}

/** Files with the kubelet's runtime socket, the most specific first. */
const SOCKET_FILES = [
  "/var/lib/kubelet/kubeadm-flags.env",
  "/var/lib/kubelet/instance-config.yaml",
  "/var/lib/kubelet/config.yaml",
  "/etc/default/kubelet",
  "/etc/sysconfig/kubelet",
  "/etc/crictl.yaml",
];

/** Which of two runtimes on one host the kubelet uses; undefined if none of its files contains it. */
function kubeletsRuntime(files: HostFiles): RuntimeUnitName | undefined {
  for (const path of SOCKET_FILES) {
    const text = files.read(path) ?? "";
    if (/\/crio\/crio\.sock/.test(text)) return "cri-o";
    if (/\/containerd\/containerd\.sock/.test(text)) return "containerd";
  }
  return undefined;
}
