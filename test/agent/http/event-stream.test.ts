import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { eventStream } from "../../../src/agent/http/event-stream.ts";
import { openStore } from "../../../src/agent/state/store.ts";
import { freshState } from "../metrics/agent-state.ts";

const HANG_MS = 30_000;

interface HeldSocket {
  readonly socket: Socket;
  readonly written: readonly string[];
  /** The oldest held frame is sent. */
  readonly leave: () => void;
  readonly destroyed: () => boolean;
}

describe("eventStream", () => {
  const LIMITS = { listeners: 2, spacingMs: 0, heartbeatMs: 10, stalledMs: 50 };

  /** A connection whose writes complete only when the test lets them. */
  function heldSocket(): HeldSocket {
    const written: string[] = [];
    const leaving: (() => void)[] = [];
    let onClose: () => void = () => undefined;
    let destroyed = false;
    const socket = {
      once: (_event: string, listener: () => void) => {
        onClose = listener;
      },
      write: (chunk: string, left?: () => void) => {
        written.push(chunk);
        if (left !== undefined) leaving.push(left);
        return true;
      },
      end: () => onClose(),
      get destroyed() {
        return destroyed;
      },
      destroy: () => {
        destroyed = true;
        onClose();
      },
    };
    return {
      socket: socket as unknown as Socket,
      written,
      leave: () => leaving.shift()?.(),
      destroyed: () => destroyed,
    };
  }

  function frames(written: readonly string[]): readonly string[] {
    return written.filter((chunk) => chunk.startsWith("data: "));
  }

  test("sends one frame at a time; changes meanwhile become one frame, the newest", async () => {
    const store = openStore(freshState());
    const stream = eventStream(store, { ...LIMITS, stalledMs: 600_000 });
    const { socket, written, leave } = heldSocket();
    stream.add(socket);

    for (const version of ["a", "b", "c"]) {
      store.update((state) => ({ ...state, version }));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const whileHeld = frames(written).length;
    leave();

    expect(whileHeld).toBe(1);
    expect(frames(written)).toHaveLength(2);
    expect(frames(written)[1]).toContain('"version":"c"');
    stream.close();
  });

  test("drops a client that reads nothing for long, and frees its slot", async () => {
    const stream = eventStream(openStore(freshState()), LIMITS);
    const { socket, destroyed } = heldSocket();
    stream.add(socket);
    stream.add(heldSocket().socket);

    await until("the drop", HANG_MS, () => (destroyed() ? true : undefined));

    expect(stream.hasPlace()).toBe(true);
    stream.close();
  });

  test("a client that comes when all slots are taken is disconnected", () => {
    const stream = eventStream(openStore(freshState()), { ...LIMITS, listeners: 1 });
    const late = heldSocket();
    stream.add(heldSocket().socket);

    stream.add(late.socket);

    expect([stream.hasPlace(), late.destroyed(), late.written]).toEqual([false, true, []]);
    stream.close();
  });

  test("an idle client gets a heartbeat", async () => {
    const stream = eventStream(openStore(freshState()), LIMITS);
    const { socket, written, leave, destroyed } = heldSocket();
    stream.add(socket);
    leave();

    await until("the heartbeat", HANG_MS, () => written.find((chunk) => chunk === ":\n\n"));

    expect(destroyed()).toBe(false);
    stream.close();
  });
});
