import { clockAheadMs } from "./agent-clock.ts";
import { type Link, listen, type OpenStream } from "./connection.ts";
import { readState, type WireState } from "./wire.ts";

/** What the page shows, at this moment. */
export interface Live {
  readonly state: WireState | undefined;
  readonly link: Link;
  /** This machine's clock, once a second. */
  readonly clock: number;
  /** The node's clock: everything that the agent dates is dated by it. */
  readonly nodeClock: number;
}

let shown: Live = { state: undefined, link: { kind: "connecting" }, clock: Date.now(), nodeClock: Date.now() };

export function live(): Live {
  return shown;
}

const openEvents: OpenStream = (receive, fail) => {
  const events = new EventSource("/api/events");
  events.addEventListener("message", ({ data }) => receive(String(data)));
  events.addEventListener("error", fail);
  return () => events.close();
};

/** Follows the agent. Notifies the page after each change, and once a second. */
export function goLive(onChange: () => void): void {
  let aheadMs = 0;
  function show(next: Partial<Pick<Live, "state" | "link">>): void {
    const clock = Date.now();
    if (next.state !== undefined) aheadMs = clockAheadMs(shown.state, next.state, clock) ?? aheadMs;
    shown = { ...shown, ...next, clock, nodeClock: clock - aheadMs };
    onChange();
  }
  setInterval(() => show({}), 1000);
  listen(openEvents, {
    onLink: (link) => show({ link }),
    onMessage: (data) => show({ state: readState(data) }),
  });
}
