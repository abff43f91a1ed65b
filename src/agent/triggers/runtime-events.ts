import { statSync } from "node:fs";
import { pause } from "../../host/poll.ts";
import { type ContainerdClient, openContainerd } from "../../runtime/containerd.ts";
import { answersCri, type CriClient, openCri } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { TaskExit } from "../../runtime/gen/containerd/events.ts";
import { ContainerEventType } from "../../runtime/gen/runtime/v1/cri.ts";
import type { OnHint, TriggersOptions } from "./triggers.ts";

type RuntimeEventsOptions = Pick<TriggersOptions, "findSocket" | "onHint"> & { readonly signal: AbortSignal };

/** Retry interval for a runtime that is down. A stat and a refused connection are cheap. */
const RETRY_MS = 250;
const PROBE_MS = 2000;
/** A stream that ends sooner than this without an error is not supported. */
const SHORTEST_STREAM_MS = 1000;
/** Every call has a timeout, including streams, which are then opened again. */
const STREAM_MS = 3_600_000;

/**
 * Follows the runtime across its restarts. Whenever it answers again, the node is scanned immediately, because it may
 * have lost power.
 */
export async function followRuntime({ findSocket, onHint, signal }: RuntimeEventsOptions): Promise<void> {
  while (!signal.aborted) {
    const path = await findSocket();
    if (path !== undefined && (await answersCri(path, { timeoutMs: PROBE_MS, signal }))) {
      onHint({ from: "runtime answers", urgency: "now" });
      await followUntilItEnds(path, onHint, signal);
      if (!signal.aborted) onHint({ from: "runtime gone", urgency: "soon" });
    }
    await pause(RETRY_MS, signal);
  }
}

async function followUntilItEnds(path: string, onHint: OnHint, signal: AbortSignal): Promise<void> {
  const socket = socketIdentity(path);
  const containerd = openContainerd(path);
  const cri = openCri(path);
  try {
    if (await hasEnded(followContainerd(containerd, onHint, signal))) return;
    if (await hasEnded(followCri(cri, onHint, signal))) return;
    // A runtime without any stream: its restart is noticed even if it is back before the next scan.
    while (
      !signal.aborted &&
      (await answersCri(path, { timeoutMs: PROBE_MS, signal })) &&
      socketIdentity(path) === socket
    ) {
      await pause(PROBE_MS, signal);
    }
  } finally {
    containerd.close();
    cri.close();
  }
}

/** Every start of a runtime creates its socket again. The inode number alone may be reused at once. */
function socketIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.ino} ${stats.ctimeMs}`;
}

/** Returns false if the runtime does not have the stream. */
async function hasEnded(following: Promise<void>): Promise<boolean> {
  const startedAt = performance.now();
  try {
    await following;
    // CRI-O without enable_pod_events, which is its default, returns OK immediately instead of Unimplemented. With it,
    // OK is the end of a stream that it closes before it stops.
    return performance.now() - startedAt >= SHORTEST_STREAM_MS;
  } catch (error) {
    if (error instanceof RuntimeError) return error.kind !== "unsupported";
    throw error;
  }
}

/** Task exits and deleted records. Starts are left out, because nothing that has just started is stuck. */
const CONTAINERD_FILTERS = [
  'topic=="/tasks/exit"',
  'topic=="/containers/delete"',
  'topic~="^/sandboxes/(exit|delete)"',
];

async function followContainerd(client: ContainerdClient, onHint: OnHint, signal: AbortSignal): Promise<void> {
  for await (const { topic, event } of client.events(CONTAINERD_FILTERS, { timeoutMs: STREAM_MS, signal })) {
    if (topic === "/tasks/exit" && isExec(event?.value)) continue;
    onHint({ from: `containerd ${topic}`, urgency: "soon" });
  }
}

/** A probe that runs a command in a container every few seconds ends a task each time. */
function isExec(bytes: Uint8Array | undefined): boolean {
  if (bytes === undefined) return false;
  const { containerId, id } = TaskExit.decode(bytes);
  return id !== containerId;
}

async function followCri(client: CriClient, onHint: OnHint, signal: AbortSignal): Promise<void> {
  for await (const { containerEventType } of client.containerEvents({ timeoutMs: STREAM_MS, signal })) {
    const isEnd =
      containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT ||
      containerEventType === ContainerEventType.CONTAINER_DELETED_EVENT;
    if (isEnd) onHint({ from: "CRI container event", urgency: "soon" });
  }
}
