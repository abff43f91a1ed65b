import type { ClassWords } from "../state/state-json.ts";
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
  listen({ onLink: (link) => show({ link }), onMessage: (data) => show({ state: readState(data) }) });
}

/** Follows a server that dates everything by this machine's clock. */
export function followEvents(onMessage: (data: string) => void, onChange: () => void): void {
  function show(link: Link): void {
    const clock = Date.now();
    shown = { ...shown, link, clock, nodeClock: clock };
    onChange();
  }
  setInterval(() => show(shown.link), 1000);
  listen({ onLink: show, onMessage });
}

/**
 * By how much this machine's clock is ahead of the node's. A scan that arrives while one listens was finished just now:
 * both clocks are then known for one moment. The state that was there when the page was opened is no such moment.
 */
export function clockAheadMs(before: WireState | undefined, state: WireState, arrivedMs: number): number | undefined {
  const { scan } = state;
  if (scan === undefined || before?.scan === undefined) return undefined;
  if (before.startedAt !== state.startedAt || before.scan.report.observedAt === scan.report.observedAt)
    return undefined;
  return arrivedMs - Date.parse(scan.report.observedAt) - scan.seconds * 1000;
}

/** How the page and its agent are connected. */
export type Link =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly lastSeenMs?: number };

interface Listener {
  readonly onMessage: (data: string) => void;
  readonly onLink: (link: Link) => void;
}

const RETRY_MS = 1000;
/** The agent sends a message after each scan. A dead connection is detected by opening another. */
const SILENCE_MS = 150_000;

/**
 * Listens forever. The browser's own reconnecting gives up for good when a proxy or a half-started agent answers with
 * an error, so each failed stream is closed here and another one opened.
 */
export function listen({ onMessage, onLink }: Listener): void {
  let lastSeenMs: number | undefined;

  function open(): void {
    const events = new EventSource("/api/events");
    let silence = setTimeout(reopen, SILENCE_MS);
    events.addEventListener("message", ({ data }) => {
      clearTimeout(silence);
      silence = setTimeout(reopen, SILENCE_MS);
      lastSeenMs = Date.now();
      onLink({ kind: "live" });
      onMessage(String(data));
    });
    events.addEventListener("error", () => {
      clearTimeout(silence);
      events.close();
      onLink(lastSeenMs === undefined ? { kind: "lost" } : { kind: "lost", lastSeenMs });
      setTimeout(open, RETRY_MS);
    });

    function reopen(): void {
      events.close();
      open();
    }
  }

  open();
}

/** The agent sends the words for what it speaks of. */
export function classWords(classId: string): ClassWords {
  return live().state?.classWords[classId] ?? { code: "", title: classId, explanation: "" };
}
