import type { Socket } from "node:net";
import { stateJson } from "../state/state-json.ts";
import type { Watched } from "../state/store.ts";

export type EventStream = ReturnType<typeof eventStream>;

interface Listener {
  readonly socket: Socket;
  /** When the current frame was written to the socket; undefined if the last one was sent. */
  sendingSinceMs: number | undefined;
  /** The state has changed since its last frame. */
  behind: boolean;
}

const LIMITS = {
  listeners: 16,
  /** The minimum interval between two frames. */
  spacingMs: 250,
  heartbeatMs: 15_000,
  /** A client that takes longer than this for a frame is gone or asleep. */
  stalledMs: 30_000,
};

/** Sends every change of the state to the subscribers, as server-sent events. */
export function eventStream(store: Watched, limits = LIMITS) {
  const listeners = new Set<Listener>();
  let lastFrameMs = Number.NEGATIVE_INFINITY;
  let pending: NodeJS.Timeout | undefined;
  let heartbeat: NodeJS.Timeout | undefined;

  function changed(): void {
    if (listeners.size === 0 || pending !== undefined) return;
    const wait = Math.max(0, lastFrameMs + limits.spacingMs - performance.now());
    pending = setTimeout(sendAll, wait).unref();
  }

  function sendAll(): void {
    pending = undefined;
    lastFrameMs = performance.now();
    const frame = stateFrame();
    for (const listener of listeners) send(listener, frame);
  }

  function stateFrame(): string {
    return `data: ${stateJson(store.state())}\n\n`;
  }

  /** One frame at a time: a slow client skips states and gets the newest, so nothing queues up. */
  function send(listener: Listener, frame: string): void {
    if (listener.sendingSinceMs !== undefined) {
      listener.behind = true;
      return;
    }
    listener.sendingSinceMs = performance.now();
    listener.behind = false;
    listener.socket.write(frame, () => {
      listener.sendingSinceMs = undefined;
      if (listener.behind && listeners.has(listener)) send(listener, stateFrame());
    });
  }

  function beat(): void {
    for (const listener of listeners) {
      if (listener.sendingSinceMs === undefined) listener.socket.write(":\n\n");
      else if (performance.now() - listener.sendingSinceMs > limits.stalledMs) listener.socket.destroy();
    }
  }

  function hasPlace(): boolean {
    return listeners.size < limits.listeners;
  }

  function add(socket: Socket): void {
    // Another one took the last place meanwhile.
    if (!hasPlace()) return void socket.destroy();
    const listener: Listener = { socket, sendingSinceMs: undefined, behind: false };
    socket.once("close", () => remove(listener));
    listeners.add(listener);
    heartbeat ??= setInterval(beat, limits.heartbeatMs).unref();
    send(listener, stateFrame());
  }

  function remove(listener: Listener): void {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(heartbeat);
    heartbeat = undefined;
    clearTimeout(pending);
    pending = undefined;
  }

  const unsubscribe = store.onChange(changed);
  return {
    hasPlace,
    add,
    close: (): void => {
      unsubscribe();
      for (const listener of listeners) {
        remove(listener);
        listener.socket.end();
      }
    },
  };
}
