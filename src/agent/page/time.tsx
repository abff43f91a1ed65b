import { live } from "./live.ts";
import { ago, timeOfDay } from "./words.ts";

/** A moment on the node's clock, as its age; the time itself is in the title. */
export function Ago({ at }: { readonly at: string }) {
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={new Date(ms).toLocaleString()}>
      {ago(ms, live().nodeClock)}
    </time>
  );
}

export function At({ at }: { readonly at: string }) {
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={new Date(ms).toLocaleString()}>
      {timeOfDay(ms, live().nodeClock)}
    </time>
  );
}
