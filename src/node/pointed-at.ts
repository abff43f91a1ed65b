import { X509Certificate } from "node:crypto";
import { posix } from "node:path";
import { CLUSTER_AUTHORITIES } from "../host/distributions.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { procText } from "../host/proc.ts";
import { entriesIn, fileText, statsOf } from "../host/safe-fs.ts";
import { printable } from "../host/text.ts";
import { faultInFront, readCniConfFiles } from "./cni-conf-files.ts";
import type { HostRoute, PluginTrust, PodCgroup, PointedAt } from "./types/pointed-at.ts";
import type { LogLine } from "./types/snapshot.ts";

/** What errors in the logs point at. Each is a small file or two; a node without such errors reads none of them. */
export function readPointedAt(where: {
  readonly root: string;
  readonly confDir: string;
  readonly binDirs: readonly string[];
  readonly lines: readonly LogLine[];
}): PointedAt {
  const { root, confDir, binDirs, lines } = where;
  const confFiles = readCniConfFiles(root, confDir, binDirs);
  return {
    memoryCgroups: memoryCgroupsIn(procText(hostPath(root, "/proc/cgroups"))),
    routes: routesIn(procText(hostPath(root, "/proc/1/net/route"))),
    confInFront: faultInFront(confFiles),
    podCgroups: podUidsIn(lines).flatMap((uid) => podCgroupsOf(root, uid)),
    trust: trustOf(root, new Set(confFiles.flatMap(({ kubeconfigs }) => kubeconfigs))),
  };
}

/** Empty on a machine with cgroup v2 alone, where the row has no meaning. */
function memoryCgroupsIn(table: string): number | undefined {
  const [, hierarchy, count] = /^memory\s+(\d+)\s+(\d+)\s/m.exec(table) ?? [];
  return count === undefined || hierarchy === "0" ? undefined : Number(count);
}

const ROUTE = /^(\S{1,64})\s+([0-9A-F]{8})\s+([0-9A-F]{8})\s+[0-9A-F]+\s+\d+\s+\d+\s+\d+\s+([0-9A-F]{8})\s/gm;

/** The kernel's own table of IPv4 routes: interface, destination, gateway and mask, in the machine's byte order. */
function routesIn(table: string): readonly HostRoute[] {
  return [...table.matchAll(ROUTE)].map(([, device = "", destination = "", gateway = "", mask = ""]) => ({
    device: printable(device),
    destination: addressIn(destination),
    prefix: bitsIn(mask),
    isDirect: gateway === "00000000",
  }));
}

function addressIn(littleEndian: string): string {
  return [...Buffer.from(littleEndian, "hex")].toReversed().join(".");
}

function bitsIn(mask: string): number {
  return Number.parseInt(mask, 16).toString(2).replaceAll("0", "").length;
}

const POD_UID = /pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12})/g;
const IS_ABOUT_CGROUPS = /cgroup|kubepods/;
const MAX_PODS = 20;

function podUidsIn(lines: readonly LogLine[]): readonly string[] {
  const about = lines.filter(({ text }) => IS_ABOUT_CGROUPS.test(text));
  const uids = about.flatMap(({ text }) => [...text.matchAll(POD_UID)].map(([, uid = ""]) => uid.replaceAll("_", "-")));
  return [...new Set(uids)].slice(0, MAX_PODS);
}

/** On cgroup v2, and the two controllers of v1 that every runtime uses. */
const CGROUP_ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/memory"] as const;
const QOS = ["", "burstable", "besteffort"] as const;

/** kubelet's two ways to name the cgroup of a pod. */
function podCgroupsOf(root: string, uid: string): readonly PodCgroup[] {
  const slice = uid.replaceAll("-", "_");
  const paths = CGROUP_ROOTS.flatMap((base) =>
    QOS.flatMap((qos) => [
      posix.join(base, "kubepods", qos, `pod${uid}`),
      qos === ""
        ? posix.join(base, "kubepods.slice", `kubepods-pod${slice}.slice`)
        : posix.join(base, "kubepods.slice", `kubepods-${qos}.slice`, `kubepods-${qos}-pod${slice}.slice`),
    ]),
  );
  return paths.flatMap((path) => {
    if (statsOf(resolveOnHost(root, path, "keep"))?.isDirectory() !== true) return [];
    return [{ uid, path, pids: pidsIn(resolveOnHost(root, path, "keep"), DEEPEST) }];
  });
}

const DEEPEST = 3;
const MAX_CHILDREN = 64;

function pidsIn(dir: string, depth: number): readonly number[] {
  const own = procText(posix.join(dir, "cgroup.procs")).split("\n").filter(Boolean).map(Number);
  if (depth === 0) return own;
  const children = entriesIn(dir).filter(({ kind }) => kind === "directory");
  return [...own, ...children.slice(0, MAX_CHILDREN).flatMap(({ name }) => pidsIn(posix.join(dir, name), depth - 1))];
}

const MAX_BYTES = 256 * 1024;

function trustOf(root: string, kubeconfigs: ReadonlySet<string>): PluginTrust {
  const read = (path: string) => authoritiesIn(fileText(resolveOnHost(root, path, "follow"), MAX_BYTES));
  return {
    cluster: CLUSTER_AUTHORITIES.flatMap((path) => {
      const fingerprints = read(path);
      return fingerprints.length === 0 ? [] : [{ path, fingerprints }];
    }),
    plugins: [...kubeconfigs].map((path) => ({ path, fingerprints: read(path) })),
  };
}

const IN_KUBECONFIG = /certificate-authority-data["']?:\s*["']?([A-Za-z0-9+/=]{40,})/g;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]{1,8192}-----END CERTIFICATE-----/g;

/** Of a bundle, or of what a kubeconfig embeds. What cannot be parsed is left out: nothing is concluded from it. */
function authoritiesIn(text: string): readonly string[] {
  const embedded = [...text.matchAll(IN_KUBECONFIG)].map(([, data = ""]) => Buffer.from(data, "base64").toString());
  return [text, ...embedded].flatMap((one) => one.match(CERTIFICATE) ?? []).flatMap(fingerprintOf);
}

function fingerprintOf(pem: string): readonly string[] {
  try {
    return [new X509Certificate(pem).fingerprint256];
  } catch {
    return [];
  }
}
