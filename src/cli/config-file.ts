import { readFileSync } from "node:fs";
import { SettingsError } from "./settings-error.ts";

const DEFAULT_PATH = "/etc/unghost/config.yaml";

export interface ConfigFile {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Reads the configuration file. The default one may be missing; one that was asked for may not. */
export async function readConfigFile(path: string | undefined, knownKeys: readonly string[]): Promise<ConfigFile> {
  const place = path ?? DEFAULT_PATH;
  let source: string;
  try {
    source = readFileSync(place, "utf8");
  } catch (error) {
    if (path === undefined) return { path: place, values: {} };
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`cannot read the configuration file ${place}: ${reason}`);
  }
  // Loaded only when there is a file: the parser costs a tenth of a whole scan.
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines });
  const flaw = document.errors[0];
  if (flaw !== undefined) {
    const { line, col } = lines.linePos(flaw.pos[0]);
    throw new SettingsError(`${place}:${line}:${col}: ${flaw.message.split("\n")[0] ?? "not YAML"}`);
  }
  const values: unknown = document.toJS();
  if (values === null) return { path: place, values: {} };
  if (typeof values !== "object" || Array.isArray(values)) {
    throw new SettingsError(`${place}: expected settings as "key: value" lines`);
  }
  for (const key of Object.keys(values)) {
    if (knownKeys.includes(key)) continue;
    const line = source.split("\n").findIndex((text) => text.startsWith(`${key}:`)) + 1;
    throw new SettingsError(`${place}:${line}: unknown key "${key}"; known are ${knownKeys.join(", ")}`);
  }
  return { path: place, values: { ...values } };
}
