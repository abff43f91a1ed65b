import { live } from "./live.ts";
import { ago, timeOfDay } from "./words.ts";

/** Whether what is shown is how it is now. Only the change is announced, not the passing seconds. */
export function Connection() {
  const { link, clock } = live();
  const lastSeenMs = link.kind === "lost" ? link.lastSeenMs : undefined;
  return (
    <p class={`link ${link.kind}`}>
      <span role="status">{WORDS[link.kind]}</span>
      {lastSeenMs === undefined ? undefined : (
        <span>
          , last seen {timeOfDay(lastSeenMs, clock)} ({ago(lastSeenMs, clock)})
        </span>
      )}
    </p>
  );
}

const WORDS = { connecting: "connecting", live: "live", lost: "connection lost" } as const;
