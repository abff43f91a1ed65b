import { parseJson, property, stringIn } from "../host/text.ts";
import type { Attachment } from "./attachment.ts";

export function networkOf(config: string): string | undefined {
  return stringIn(parseJson(config), "name");
}

/**
 * What ADD was given, with what it returned as the previous result, for a DEL whose own configuration lacks something
 * of it. Undefined if the DEL had all of it: a second try would give the same answer.
 */
export function recordedConfig(attachment: Attachment, given: string): string | undefined {
  const recorded = parseJson(attachment.config);
  if (!isObject(recorded)) return undefined;
  const current = parseJson(given);
  // The output of an ADD that failed is an error, and not a result.
  const result = attachment.phase === "completed" ? parseJson(attachment.result ?? "") : undefined;
  const complete = isObject(result) ? { ...recorded, prevResult: result } : recorded;
  if (!isObject(current)) return JSON.stringify(complete);
  const lacks = Object.keys(complete).some((key) => lacksPart(property(complete, key), property(current, key)));
  return lacks ? JSON.stringify(complete) : undefined;
}

/** A chain adds to the previous result after this plugin: having one is enough. */
function lacksPart(recorded: unknown, current: unknown): boolean {
  if (isObject(recorded) && isObject(current)) {
    if ("interfaces" in current || "ips" in current) return false;
    return Object.keys(recorded).some((key) => lacksPart(property(recorded, key), property(current, key)));
  }
  return JSON.stringify(recorded) !== JSON.stringify(current);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
