import type { ServerResponse } from "node:http";
import { statusOf } from "./api-object.ts";

/**
 * The behaviour of a server: well, silent, 401 for all credentials, too busy (with a Retry-After), failing, or breaking
 * every connection in the middle of an answer.
 */
export const MOODS = ["well", "hang", "401", "429", "500", "cut"] as const;
export type Mood = (typeof MOODS)[number];

export function parseMood(text: string): Mood {
  return MOODS.find((mood) => mood === text.trim()) ?? "well";
}

const RETRY_AFTER_SECONDS = 1;

const REFUSALS = {
  "401": { code: 401, reason: "Unauthorized", message: "Unauthorized" },
  "429": { code: 429, reason: "TooManyRequests", message: "Too many requests, please try again later." },
  "500": { code: 500, reason: "InternalError", message: "etcdserver: request timed out" },
} as const;

/** Whether the mood has handled the request. */
export function actOut(mood: Mood, response: ServerResponse): boolean {
  if (mood === "well") return false;
  if (mood === "hang") return true;
  if (mood === "cut") {
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"kind":"PodList","items":[{"metadata":{"name":"\u00e9');
    setImmediate(() => response.destroy());
    return true;
  }
  const refusal = REFUSALS[mood];
  const patience = mood === "429" ? { "retry-after": String(RETRY_AFTER_SECONDS) } : {};
  response.writeHead(refusal.code, { "content-type": "application/json", ...patience });
  response.end(JSON.stringify(statusOf(refusal)));
  return true;
}
