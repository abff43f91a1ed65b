import { clock, link } from "./live.ts";
import { ago, timeOfDay } from "./words.ts";

/** Whether what is shown is how it is now. Only the change is announced, not the passing seconds. */
export function Connection() {
  const { value } = link;
  const lastSeenMs = value.kind === "lost" ? value.lastSeenMs : undefined;
  return (
    <p class={`link ${value.kind}`}>
      <span role="status">{WORDS[value.kind]}</span>
      {lastSeenMs === undefined ? undefined : (
        <span>
          , last seen {timeOfDay(lastSeenMs, clock.value)} ({ago(lastSeenMs, clock.value)})
        </span>
      )}
    </p>
  );
}

const WORDS = { connecting: "connecting", live: "live", lost: "connection lost" } as const;
