import { mapLimited } from "../host/concurrency.ts";
import { type Oddity, read, type Source } from "../host/source.ts";
import { parseJson, property } from "../host/text.ts";
import type { CriClient } from "../runtime/cri.ts";
import { RuntimeError } from "../runtime/errors.ts";
import {
  type Container as CriContainer,
  ContainerState as CriContainerState,
  type PodSandbox,
  PodSandboxState,
  type StatusResponse,
} from "../runtime/gen/runtime/v1/cri.ts";
import type { CallOptions } from "../runtime/grpc.ts";
import { type Listing, listAllContainers } from "../runtime/lists.ts";
import { containerId, podUid, sandboxId } from "./types/ids.ts";
import type { CniDirs, Container, ContainerExit, ContainerState, CriFacts, Sandbox } from "./types/runtime.ts";

/**
 * Concurrent per-container calls. CRI-O searches for seconds for each container that it has lost, and those must not
 * wait for each other.
 */
const STATUS_CONCURRENCY = 64;
/** CRI-O takes almost four seconds for each of those, on every request. */
const SLOW_STATUS_MS = 8000;
/** Who asks for less time than by default gets an answer in it, and what is not known by then. */
const DEFAULT_TIMEOUT_MS = 4000;

/** Set if the runtime's list was too long for one answer and had to be assembled. */
const OVERFLOWED = {
  path: "ListPodSandbox",
  reason:
    "the list overflows one message; it was put together pod by pod, and a pod that nothing else names is missing",
};

/** Name, version and status of the runtime. */
export interface RuntimeInfo extends Pick<CriFacts, "conditions" | "cniDirs" | "statusHangsMs"> {
  readonly name: string;
  readonly version: string;
}

/** Returns undefined without an answer: readCri() then gets the same error and reports it. */
export async function fetchRuntimeInfo(cri: CriClient, options: CallOptions): Promise<RuntimeInfo | undefined> {
  try {
    const [version, status] = await Promise.all([cri.version(options), statusOrDeadline(cri, options)]);
    const { runtimeName: name, runtimeVersion } = version;
    const known = { name, version: runtimeVersion };
    if ("hangsMs" in status) return { ...known, conditions: [], statusHangsMs: status.hangsMs };
    return { ...known, conditions: status.status?.conditions ?? [], cniDirs: parseCniDirs(status.info) };
  } catch (error) {
    if (error instanceof RuntimeError) return undefined;
    throw error;
  }
}

/**
 * A runtime with a blocked CNI lock answers everything but Status. Half of the timeout: what depends on the answer,
 * mainly the CNI directories, must still be read in the other half.
 */
async function statusOrDeadline(
  cri: CriClient,
  options: CallOptions,
): Promise<StatusResponse | { readonly hangsMs: number }> {
  const hangsMs = Math.ceil(options.timeoutMs / 2);
  try {
    return await cri.status({ timeoutMs: hangsMs, signal: AbortSignal.timeout(hangsMs) });
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "deadline") return { hangsMs };
    throw error;
  }
}

/** Reads the node's state from CRI. Throws RuntimeError; the caller turns it into a failed source. */
export async function readCri(
  cri: CriClient,
  runtimeInfo: Promise<RuntimeInfo | undefined>,
  listing: Promise<Listing<PodSandbox>>,
  options: CallOptions,
): Promise<Source<CriFacts>> {
  const idsListed = async () => (await listing).items.map(({ id }) => id);
  const [listedSandboxes, firstContainers] = await Promise.all([listing, listAllContainers(cri, idsListed, options)]);
  const call = statusCall(options);
  const again = { cri, call, list: () => listAllContainers(cri, idsListed, options) };
  const { items: listedContainers, sandboxesIncomplete } = await settled(firstContainers, listedSandboxes, again);
  const sandboxes = listedSandboxes.items.map(toSandbox);
  const notReady = new Set(sandboxes.filter((sandbox) => sandbox.state === "notReady").map((sandbox) => sandbox.id));
  const unread: Oddity[] = [];
  const containers = await mapLimited(listedContainers, STATUS_CONCURRENCY, async (container): Promise<Container> => {
    const facts = toContainer(container);
    if (!notReady.has(facts.sandboxId) || facts.state === "running") return facts;
    const exit = await readExit(cri, container.id, call);
    if (exit !== "late") return exit === undefined ? facts : { ...facts, exit };
    unread.push({ path: `ContainerStatus ${container.id}`, reason: LATE });
    return { ...facts, endUnread: true };
  });
  const { conditions = [], cniDirs, statusHangsMs } = (await runtimeInfo) ?? {};
  const facts = { conditions, sandboxes, sandboxesIncomplete, containers, cniDirs, statusHangsMs };
  return read(facts, listedSandboxes.coverage === "whole" ? unread : [OVERFLOWED, ...unread]);
}

/**
 * Both lists are read at the same time. A container without a listed sandbox may be of a pod that was removed
 * meanwhile: containers are deleted before their sandbox, so a later list does not have it. Or of one that was created
 * meanwhile: then the runtime has the sandbox by now, and the container is newer than this snapshot.
 */
async function settled(
  first: Listing<CriContainer>,
  sandboxes: Listing<PodSandbox>,
  again: { readonly cri: CriClient; readonly call: CallOptions; readonly list: () => Promise<Listing<CriContainer>> },
): Promise<{ readonly items: readonly CriContainer[]; readonly sandboxesIncomplete?: true }> {
  if (sandboxes.coverage !== "whole") return { items: first.items, sandboxesIncomplete: true };
  const ids = new Set(sandboxes.items.map(({ id }) => id));
  const isStray = ({ podSandboxId }: CriContainer): boolean => !ids.has(podSandboxId);
  if (!first.items.some(isStray)) return first;
  const { cri, call } = again;
  const { items } = await again.list();
  const unlisted = [...new Set(items.filter(isStray).map(({ podSandboxId }) => podSandboxId))];
  const answers = await mapLimited(unlisted, STATUS_CONCURRENCY, (id) => hasSandbox(cri, id, call));
  if (answers.includes("unknown")) return { items, sandboxesIncomplete: true };
  const newer = new Set(unlisted.filter((_, index) => answers[index] === "yes"));
  return { items: items.filter(({ podSandboxId }) => !newer.has(podSandboxId)) };
}

async function hasSandbox(cri: CriClient, id: string, call: CallOptions): Promise<"yes" | "no" | "unknown"> {
  try {
    return (await cri.podSandboxState(id, call)) === undefined ? "no" : "yes";
  } catch (error) {
    if (error instanceof RuntimeError) return "unknown";
    throw error;
  }
}

/** False without an answer: readCri() reports the error. */
export async function hasNotReady(listing: Promise<Listing<PodSandbox>>): Promise<boolean> {
  try {
    return (await listing).items.some(({ state }) => state === PodSandboxState.SANDBOX_NOTREADY);
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  }
}

function toSandbox(item: PodSandbox): Sandbox {
  return {
    id: sandboxId(item.id),
    pod: {
      namespace: item.metadata?.namespace ?? "",
      name: item.metadata?.name ?? "",
      uid: podUid(item.metadata?.uid ?? ""),
      attempt: item.metadata?.attempt ?? 0,
    },
    state: item.state === PodSandboxState.SANDBOX_READY ? "ready" : "notReady",
    createdAt: item.createdAt,
    labels: item.labels,
    annotations: item.annotations,
  };
}

const CONTAINER_STATES: Readonly<Record<CriContainerState, ContainerState>> = {
  [CriContainerState.CONTAINER_CREATED]: "created",
  [CriContainerState.CONTAINER_RUNNING]: "running",
  [CriContainerState.CONTAINER_EXITED]: "exited",
  [CriContainerState.CONTAINER_UNKNOWN]: "unknown",
};

function toContainer(item: CriContainer): Container {
  return {
    id: containerId(item.id),
    sandboxId: sandboxId(item.podSandboxId),
    name: item.metadata?.name ?? "",
    attempt: item.metadata?.attempt ?? 0,
    state: CONTAINER_STATES[item.state] ?? "unknown",
    createdAt: item.createdAt,
    labels: item.labels,
  };
}

/** A separate timeout: slow status calls must not use up the time of the lists, or the reverse. */
function statusCall({ timeoutMs }: CallOptions): CallOptions {
  if (timeoutMs < DEFAULT_TIMEOUT_MS) return { timeoutMs, signal: AbortSignal.timeout(timeoutMs) };
  const enough = Math.max(timeoutMs, SLOW_STATUS_MS);
  return { timeoutMs: enough, signal: AbortSignal.timeout(2 * enough) };
}

const LATE = "the runtime did not answer in time; how this container ended is not known";

/** Returns undefined if it was removed between list and status: then it does not count. */
async function readExit(cri: CriClient, id: string, options: CallOptions): Promise<ContainerExit | "late" | undefined> {
  try {
    const { status } = await cri.containerStatus(id, options);
    if (status === undefined) return undefined;
    const { exitCode, reason, finishedAt, logPath } = status;
    return { exitCode, reason, finishedAt, logPath };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    if (error.kind === "not-found") return undefined;
    if (error.kind === "deadline") return "late";
    throw error;
  }
}

/**
 * containerd returns its effective configuration as JSON in the verbose status. 1.x and 2.0 have one `binDir`, later
 * ones several `binDirs`.
 */
export function parseCniDirs(info: Readonly<Record<string, string>>): CniDirs | undefined {
  const config = parseJson(info["config"] ?? "");
  const cni = property(config, "cni");
  const conf = property(cni, "confDir");
  const several = property(cni, "binDirs");
  const single = property(cni, "binDir");
  const bin = (Array.isArray(several) ? several : [single]).filter((dir) => typeof dir === "string" && dir !== "");
  if (typeof conf !== "string" || conf === "") return undefined;
  return { conf, bin: bin as string[] };
}
