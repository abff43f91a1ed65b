import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * A node's part of one cgroup hierarchy. `name` is the directory under /sys/fs/cgroup inside the node; "" means a pure
 * v2 machine, where /sys/fs/cgroup is the hierarchy itself. `options` are the mount options of a v1 hierarchy.
 */
export interface CgroupPart {
  readonly name: string;
  readonly type: "cgroup" | "cgroup2";
  readonly options: string;
  readonly path: string;
}

interface Hierarchy {
  readonly mountPoint: string;
  readonly mountRoot: string;
  readonly type: "cgroup" | "cgroup2";
  readonly controllers: string;
}

/** `v2` mounts the v2 hierarchy alone, as today's distributions do. A machine without v1 has no other. */
export type CgroupVersion = "v1" | "v2";

/** UNGHOST_LAB_CGROUP chooses for nodes that say nothing. */
export function defaultCgroup(): CgroupVersion {
  return process.env["UNGHOST_LAB_CGROUP"] === "v2" ? "v2" : "v1";
}

export function hasCgroup2(): boolean {
  return mountedHierarchies().some(({ type }) => type === "cgroup2");
}

/**
 * For a node with limits that count: a v2 hierarchy beside v1 has no controllers for them. kubelet needs them, too, when
 * it starts again beside running pods.
 */
export function cgroupWithLimits(): CgroupVersion {
  return mountedHierarchies().some(({ type }) => type === "cgroup") ? "v1" : "v2";
}

/** The cgroups of a node called `name`: below our own, so that our limits apply to the node too. */
export function planCgroups(name: string, version: CgroupVersion = defaultCgroup()): readonly CgroupPart[] {
  const own = ownPaths();
  const hierarchies = mountedHierarchies().filter(({ type }) => version === "v1" || type === "cgroup2");
  if (hierarchies.length === 0) throw new Error("no node with cgroup v2: this machine has no cgroup2 mounted");
  const parts: CgroupPart[] = [];
  for (const hierarchy of hierarchies) {
    const folder = version === "v2" ? "" : relative("/sys/fs/cgroup", hierarchy.mountPoint);
    if (folder.startsWith("..")) continue;
    const ownPath = own.get(hierarchy.controllers);
    if (ownPath === undefined) continue;
    // v2 forbids controllers for the children of a cgroup that has processes, and ours has this process.
    const base = folder === "" && hasControllers(hierarchy) ? "/" : ownPath;
    const inMount = base.startsWith(hierarchy.mountRoot) ? relative(hierarchy.mountRoot, base) : "";
    parts.push({
      name: folder,
      type: hierarchy.type,
      options: hierarchy.type === "cgroup" ? mountOptions(hierarchy.controllers) : "",
      path: join(hierarchy.mountPoint, inMount, name),
    });
  }
  return parts;
}

/** False for a v2 hierarchy beside v1: whatever controller is bound there is missing here. */
function hasControllers({ mountPoint }: Hierarchy): boolean {
  return readFileSync(join(mountPoint, "cgroup.controllers"), "utf8").trim() !== "";
}

/** Synchronous: a directory that is created in the background could appear after an exit has cleaned up. */
export function createCgroups(parts: readonly CgroupPart[]): void {
  for (const part of parts) {
    mkdirSync(part.path, { recursive: true });
    if (part.name === "cpuset" || part.options.split(",").includes("cpuset")) inheritCpuset(part.path);
    if (part.name === "") enableControllers(part.path);
  }
}

/**
 * Moves the launcher out of a node's v2 root, where only `init` may stay: v2 gives controllers to the children of a
 * cgroup without processes of its own.
 */
export function leaveRootToNode(parts: readonly CgroupPart[], init: number): void {
  for (const { path } of parts.filter(({ name }) => name === "")) {
    const pids = readFileSync(join(path, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
    for (const pid of pids.filter((one) => Number(one) !== init)) {
      writeFileSync(join(path, "..", "cgroup.procs"), pid);
    }
  }
}

/** Removes the cgroups and everything below them; returns false while a process is still in one. */
export function removeCgroups(parts: readonly CgroupPart[]): boolean {
  return parts.map((part) => removeTree(part.path)).every((removed) => removed);
}

function removeTree(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeTree(join(path, entry.name));
    }
    rmdirSync(path);
    return true;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return true;
    if (code === "EBUSY" || code === "ENOTEMPTY") return false;
    throw error;
  }
}

/** Our group in each hierarchy, by its controllers ("memory", "cpu,cpuacct", "name=systemd", "" for v2). */
function ownPaths(): ReadonlyMap<string, string> {
  const lines = readFileSync("/proc/self/cgroup", "utf8").trim().split("\n");
  return new Map(
    lines.map((line) => {
      const [, controllers = "", ...path] = line.split(":");
      return [controllers, path.join(":")];
    }),
  );
}

function mountedHierarchies(): readonly Hierarchy[] {
  const own = ownPaths();
  const hierarchies: Hierarchy[] = [];
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [type, , superOptions = ""] = after.split(" ");
    const fields = before.split(" ");
    const mountRoot = fields[3] ?? "/";
    const mountPoint = fields[4] ?? "";
    if (type === "cgroup2") hierarchies.push({ mountPoint, mountRoot, type, controllers: "" });
    if (type !== "cgroup") continue;
    const options = superOptions.split(",");
    const controllers = [...own.keys()].find(
      (key) => key !== "" && key.split(",").every((one) => options.includes(one)),
    );
    if (controllers !== undefined) hierarchies.push({ mountPoint, mountRoot, type, controllers });
  }
  return hierarchies;
}

function mountOptions(controllers: string): string {
  return controllers.startsWith("name=") ? `none,${controllers}` : controllers;
}

/** A new v1 cpuset is empty and accepts no process until its CPUs and memory nodes are set. */
function inheritCpuset(path: string): void {
  for (const file of ["cpuset.cpus", "cpuset.mems"]) {
    const inherited = readFileSync(join(path, "..", file), "utf8").trim();
    writeFileSync(join(path, file), inherited);
  }
}

function enableControllers(path: string): void {
  const available = readFileSync(join(path, "..", "cgroup.controllers"), "utf8")
    .trim()
    .split(/\s+/)
    .filter(Boolean);
  for (const controller of available) {
    try {
      writeFileSync(join(path, "..", "cgroup.subtree_control"), `+${controller}`);
    } catch (error) {
      // Without one controller runc still runs; it only cannot set that limit, and the lab's pods set none.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }
}
