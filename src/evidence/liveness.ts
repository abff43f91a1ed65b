import { absent, type Source } from "../host/source.ts";
import type { ContainerdFacts, ProcessFacts, ShimProcess, Task } from "../node/types/runtime.ts";
import type { StoredRecords } from "../node/types/snapshot.ts";

/** The sources of signs of life. */
export type Sign = SignOfLife["sign"];

export type SignOfLife =
  | { readonly sign: "ready" }
  | { readonly sign: "container"; readonly name: string }
  | { readonly sign: "task"; readonly status: Task["status"]; readonly pid: number }
  | { readonly sign: "shim"; readonly pid: number }
  | { readonly sign: "process"; readonly pid: number };

/**
 * Is this sandbox dead?
 * - `alive`: something of it runs, whatever other sources report.
 * - `dead`: every sign of life was checked and readable, and none was found.
 * - `unproven`: no sign was found, and at least one could not be read.
 *
 * `checked` includes the signs that could not be read. Sources that the node does not have are not checked.
 */
export type Liveness =
  | {
      readonly state: "alive";
      readonly checked: readonly Sign[];
      readonly found: readonly [SignOfLife, ...SignOfLife[]];
      readonly unread: readonly Sign[];
    }
  | { readonly state: "dead"; readonly checked: readonly Sign[] }
  | { readonly state: "unproven"; readonly checked: readonly Sign[]; readonly unread: readonly [Sign, ...Sign[]] };

/** What the runtime reports about one sandbox. */
export interface CriSigns {
  readonly isReady: boolean;
  readonly containers: readonly { readonly id: string; readonly name: string; readonly isRunning: boolean }[];
}

/** The signs of the whole node, by id of a sandbox or container. */
export interface NodeSigns {
  /** `absent` if the runtime has no tasks, or does not run. */
  readonly tasks: Source<ReadonlyMap<string, Task>>;
  readonly processes: Source<{
    readonly shims: ReadonlyMap<string, Pick<ShimProcess, "pid">>;
    readonly byContainer: ProcessFacts["byContainer"];
  }>;
}

export function nodeSigns(
  tasks: Source<readonly Task[]>,
  processes: Source<Pick<ProcessFacts, "shims" | "byContainer">>,
): NodeSigns {
  return {
    tasks: mapSource(tasks, (all) => new Map(all.map((task) => [task.containerId, task]))),
    processes: mapSource(processes, ({ shims, byContainer }) => ({
      shims: new Map(shims.map((shim) => [shim.id, shim])),
      byContainer,
    })),
  };
}

/** `cri` is absent if the runtime does not run: then `containerIds` come from its database. */
export interface SandboxSigns {
  readonly id: string;
  readonly cri: Source<CriSigns>;
  readonly containerIds?: readonly string[];
}

/** The only decision about liveness: used by diagnosis, by the proof right before each change, and offline. */
export function livenessOf(sandbox: SandboxSigns, node: NodeSigns): Liveness {
  const { cri } = sandbox;
  const containers = cri.status === "read" ? cri.value.containers.map(({ id }) => id) : [];
  const ids = [sandbox.id, ...containers, ...(sandbox.containerIds ?? [])];
  const searches = [...criSearches(cri), ...taskSearches(node.tasks, ids), ...processSearches(node.processes, ids)];
  const checked = searches.map(({ sign }) => sign);
  const unread = searches.filter(({ result }) => result === "unread").map(({ sign }) => sign);
  const [first, ...more] = searches.flatMap(({ result }) => (typeof result === "object" ? [result] : []));
  if (first !== undefined) return { state: "alive", checked, found: [first, ...more], unread };
  const [unreadFirst, ...unreadMore] = unread;
  if (unreadFirst !== undefined) return { state: "unproven", checked, unread: [unreadFirst, ...unreadMore] };
  return { state: "dead", checked };
}

interface Search {
  readonly sign: Sign;
  readonly result: SignOfLife | "unread" | undefined;
}

function criSearches(cri: Source<CriSigns>): readonly Search[] {
  switch (cri.status) {
    case "absent":
      return [];
    case "failed":
      return [notRead("ready"), notRead("container")];
    case "read": {
      const { isReady, containers } = cri.value;
      const running = containers.find(({ isRunning }) => isRunning);
      return [
        { sign: "ready", result: isReady ? { sign: "ready" } : undefined },
        { sign: "container", result: running && { sign: "container", name: running.name } },
      ];
    }
  }
}

const LIVE_TASKS: ReadonlySet<Task["status"]> = new Set(["created", "running", "paused", "pausing"]);

function taskSearches(tasks: NodeSigns["tasks"], ids: readonly string[]): readonly Search[] {
  switch (tasks.status) {
    case "absent":
      return [];
    case "failed":
      return [notRead("task")];
    case "read": {
      const its = ids.map((id) => tasks.value.get(id)).filter((one) => one !== undefined);
      const live = its.find(({ status }) => LIVE_TASKS.has(status));
      if (live !== undefined) return [{ sign: "task", result: { sign: "task", status: live.status, pid: live.pid } }];
      const isRead = its.every(({ status }) => status === "stopped");
      return [isRead ? { sign: "task", result: undefined } : notRead("task")];
    }
  }
}

/** Every node has processes: if they were not read, for whatever reason, a process may be alive. */
function processSearches(processes: NodeSigns["processes"], ids: readonly string[]): readonly Search[] {
  if (processes.status !== "read") return [notRead("shim"), notRead("process")];
  const { shims, byContainer } = processes.value;
  const shim = ids.map((id) => shims.get(id)).find((one) => one !== undefined);
  const pid = ids.map((id) => byContainer.get(id)?.[0]).find((one) => one !== undefined);
  return [
    { sign: "shim", result: shim && { sign: "shim", pid: shim.pid } },
    { sign: "process", result: pid === undefined ? undefined : { sign: "process", pid } },
  ];
}

function notRead(sign: Sign): Search {
  return { sign, result: "unread" };
}

function mapSource<T, U>(source: Source<T>, change: (value: T) => U): Source<U> {
  return source.status === "read" ? { ...source, value: change(source.value) } : source;
}

/** Which source still refers to an id. An id without a reference is a leak. */
export type Reference =
  | "runtime-list"
  | "containerd-record"
  | "sandbox-store"
  | "processes-unread"
  | "shim"
  | "plugin"
  | "other-runtime"
  | "process";

export interface ReferenceSources {
  readonly isListed: boolean;
  /** Undefined if the runtime is not containerd. */
  readonly containerd: Pick<ContainerdFacts, "records" | "sandboxes"> | undefined;
  readonly processes: Source<Pick<ProcessFacts, "shims" | "plugins" | "byContainer" | "othersIds">>;
}

/** Returns the first reference; undefined if all sources were read and none refers to the id. */
export function referenceTo(id: string, { isListed, containerd, processes }: ReferenceSources): Reference | undefined {
  if (isListed) return "runtime-list";
  if (containerd?.records.some((record) => record.id === id)) return "containerd-record";
  if (containerd?.sandboxes.some((sandbox) => sandbox.id === id)) return "sandbox-store";
  if (processes.status !== "read") return "processes-unread";
  const { shims, plugins, byContainer, othersIds } = processes.value;
  if (shims.some((shim) => shim.id === id)) return "shim";
  if (plugins.some((plugin) => plugin.sandboxId === id)) return "plugin";
  if (othersIds?.has(id)) return "other-runtime";
  return byContainer.has(id) ? "process" : undefined;
}

/** Liveness of a stored sandbox or container while its runtime does not run: then only processes can show it. */
export function livenessOfStored(
  id: string,
  { records }: Pick<StoredRecords, "records">,
  processes: Source<ProcessFacts>,
): Liveness {
  const containerIds = records.filter(({ container }) => container?.sandboxId === id).map((record) => record.id);
  return livenessOf({ id, cri: absent(DOWN), containerIds }, nodeSigns(absent(DOWN), processes));
}

const DOWN = "the runtime does not run";
