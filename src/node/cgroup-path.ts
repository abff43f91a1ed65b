import { TALOS_KUBELET_CGROUP } from "../host/distributions.ts";
import { fullIdsIn } from "./types/ids.ts";

/** A cgroup of a process: with v2 there is one, with v1 one in each hierarchy, most of them with the same path. */
export interface CgroupPath {
  /** `` of v2, `name=systemd`, `cpu,cpuacct` … */
  readonly hierarchies: readonly string[];
  readonly segments: readonly string[];
}

/** The path in each hierarchy, from /proc/<pid>/cgroup. */
export function parseCgroup(text: string): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const line of text.split("\n")) {
    const name = line.indexOf(":") + 1;
    const path = line.indexOf(":", name) + 1;
    if (name > 0 && path > 0) paths.set(line.slice(name, path - 1), line.slice(path));
  }
  return paths;
}

/**
 * The cgroups below the node's own: a node may itself be a container (kind, k3d), and the container of its first
 * process is no evidence about the others. Equal paths are merged, because a node has hundreds of processes.
 */
export function groupsBelow(
  paths: ReadonlyMap<string, string>,
  init: ReadonlyMap<string, string>,
): readonly CgroupPath[] {
  const groups = new Map<string, { hierarchies: string[]; segments: readonly string[] }>();
  for (const [hierarchy, path] of paths) {
    const own = init.get(hierarchy) ?? "";
    const key = `${path}\0${own}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { hierarchies: [hierarchy], segments: segmentsBelow(path, own) });
    else known.hierarchies.push(hierarchy);
  }
  return [...groups.values()];
}

function segmentsBelow(path: string, init: string): readonly string[] {
  const segments = path.split("/").filter(Boolean);
  const own = init.split("/").filter(Boolean);
  const shared = segments.findIndex((segment, index) => segment !== own[index]);
  return shared === -1 ? [] : segments.slice(shared);
}

/**
 * The ids of the containers of a process, by the FIRST id on each path: the runtime created that cgroup, and its
 * processes may create others below it with any name. Users can choose the names of cgroups in their own sessions.
 */
export function containerIdsOf(paths: readonly CgroupPath[]): readonly string[] {
  const ids = paths.flatMap(({ segments }) => {
    if (isUserSession(segments)) return [];
    const first = segments.map((segment) => fullIdsIn(segment)).find((found) => found.length > 0);
    return first?.slice(0, 1) ?? [];
  });
  return [...new Set(ids)];
}

/** `docker/<id>`, `docker-<id>.scope`, `libpod-<id>.scope`, `nerdctl-<id>.scope` … */
const OTHER_ENGINE = /^(?:docker|libpod|nerdctl|buildkit|machine\.slice|lxc)/;

/**
 * A container of Docker, podman or similar that does not belong to a pod. Containers of pods are below kubelet's
 * cgroups, with any runtime (cri-dockerd).
 */
export function isOtherEngines(paths: readonly CgroupPath[]): boolean {
  return paths.some(({ segments }) => {
    const at = segments.findIndex((segment) => fullIdsIn(segment).length > 0);
    const above = segments.slice(0, at + 1);
    return above.some((name) => OTHER_ENGINE.test(name)) && !above.some((name) => name.startsWith("kubepods"));
  });
}

/** Cgroups of pods, Docker, podman, LXC and systemd-nspawn, with or without an id in the name. */
const CONTAINER_SEGMENT = /^(?:kubepods|docker$|libpod|lxc|machine\.slice$|buildkit)/;

export function isInContainer(paths: readonly CgroupPath[]): boolean {
  const segments = paths.flatMap((path) => path.segments);
  return segments.some((segment) => CONTAINER_SEGMENT.test(segment) || fullIdsIn(segment).length > 0);
}

/** Cgroups of user sessions, by systemd or elogind. */
export function isUserSession(segments: readonly string[]): boolean {
  return segments[0] === "user.slice" || segments.some((segment) => /^user@\d+\.service$/.test(segment));
}

const SERVICE = /^[\w.:@\\-]+\.service$/;
const SLICE = /^[\w.:@\\-]+\.slice$/;

/**
 * Whether the service manager itself put the process there: exactly the cgroup of one system service (`kubelet.service`
 * may have its own mount namespace, by its unit's settings or OpenShift's kubens), or Talos' cgroup of kubelet. Only
 * root creates such cgroups, and no container runtime puts a container into exactly one of them.
 */
export function isSystemService(paths: readonly CgroupPath[]): boolean {
  const groupIn = (hierarchy: string) => paths.find(({ hierarchies }) => hierarchies.includes(hierarchy));
  const path = groupIn("name=systemd") ?? groupIn("");
  if (path === undefined || isUserSession(path.segments) || isInContainer([path])) return false;
  const [last = "", ...above] = path.segments.toReversed();
  if (path.segments.join("/") === TALOS_KUBELET_CGROUP) return true;
  return SERVICE.test(last) && above.length > 0 && above.every((segment) => SLICE.test(segment));
}
