import { computed, signal } from "@preact/signals";
import { clockAheadMs } from "./agent-clock.ts";
import { type Link, listen, type OpenStream } from "./connection.ts";
import { readState, type WireState } from "./wire.ts";

export const state = signal<WireState | undefined>(undefined);
export const link = signal<Link>({ kind: "connecting" });
/** This machine's clock, once a second. */
export const clock = signal(Date.now());
const aheadMs = signal(0);
/** The node's clock: everything that the agent dates is dated by it. */
export const nodeClock = computed(() => clock.value - aheadMs.value);

const openEvents: OpenStream = (hear, fail) => {
  const events = new EventSource("/api/events");
  events.addEventListener("message", ({ data }) => hear(String(data)));
  events.addEventListener("error", fail);
  return () => events.close();
};

export function goLive(): void {
  setInterval(() => {
    clock.value = Date.now();
  }, 1000);
  listen(openEvents, {
    onLink: (next) => {
      link.value = next;
    },
    onMessage: (data) => {
      const next = readState(data);
      clock.value = Date.now();
      aheadMs.value = clockAheadMs(state.value, next, clock.value) ?? aheadMs.value;
      state.value = next;
    },
  });
}
