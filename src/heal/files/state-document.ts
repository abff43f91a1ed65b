import { renameSync } from "node:fs";
import * as v from "valibot";
import { readRegularFile } from "../../host/safe-fs.ts";
import { parseJson, property } from "../../host/text.ts";

export type StateDocument<T> =
  | { readonly kind: "none" }
  | { readonly kind: "read"; readonly value: T }
  | { readonly kind: "unreadable"; readonly problem: string };

const OWN_API_VERSION = "unghost.dev/v1";

/**
 * Reads a JSON document of the state directory. One that this version cannot read is renamed: the caller writes a new
 * one under the same name, and the version that wrote the old one may come back.
 */
export function readStateDocument<Schema extends v.GenericSchema>(
  path: string,
  schema: Schema,
  maxBytes?: number,
): StateDocument<v.InferOutput<Schema>> {
  const file = readRegularFile(path, maxBytes);
  if (file.kind === "gone") return { kind: "none" };
  if (file.kind !== "content") return { kind: "unreadable", problem: `${path} ${file.reason}` };
  const json = parseJson(file.text);
  const parsed = v.safeParse(schema, json);
  if (parsed.success) return { kind: "read", value: parsed.output };
  return { kind: "unreadable", problem: `${path} ${whyUnreadable(json)}; ${setAside(path)}` };
}

function whyUnreadable(json: unknown): string {
  const apiVersion = property(json, "apiVersion");
  return typeof apiVersion === "string" && apiVersion !== OWN_API_VERSION
    ? `was written by another version of unghost (apiVersion ${apiVersion})`
    : "is damaged, or was written by a newer version of unghost";
}

function setAside(path: string): string {
  const aside = `${path}.unreadable`;
  try {
    renameSync(path, aside);
    return `kept as ${aside}`;
  } catch {
    // A read-only directory: then nothing replaces the file either.
    return "it stays where it is";
  }
}
