import { readFileSync } from "node:fs";
import { SettingsError } from "./settings-error.ts";

const DEFAULT_PATH = "/etc/unghost/config.yaml";

/** One value and where it stands, so that a complaint can name the line. */
interface ConfigValue {
  readonly value: unknown;
  readonly place: string;
}

export type ConfigFile = ReadonlyMap<string, ConfigValue>;

/** Reads the configuration file. The default one may be missing; one that was asked for may not. */
export async function readConfigFile(asked: string | undefined, knownKeys: readonly string[]): Promise<ConfigFile> {
  const path = asked ?? DEFAULT_PATH;
  const source = readSource(path, asked !== undefined);
  if (source === undefined) return new Map();
  // Loaded only when there is a file: the parser costs a tenth of a whole scan.
  const { isMap, isNode, LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  const [flaw] = document.errors;
  if (flaw !== undefined) {
    const { line, col } = lines.linePos(flaw.pos[0]);
    throw new SettingsError(`${path}:${line}:${col}: ${flaw.message}`);
  }
  if (document.toJS() === null) return new Map();
  if (!isMap(document.contents)) throw new SettingsError(`${path}: expected settings as "key: value" lines`);
  const values = new Map<string, ConfigValue>();
  for (const { key, value } of document.contents.items) {
    const start = isNode(key) ? key.range?.[0] : undefined;
    const place = start === undefined ? path : `${path}:${lines.linePos(start).line}`;
    const name = String(key);
    if (!knownKeys.includes(name)) {
      throw new SettingsError(`${place}: unknown key "${name}"; known are ${knownKeys.join(", ")}`);
    }
    values.set(name, { value: isNode(value) ? value.toJS(document) : value, place });
  }
  return values;
}

function readSource(path: string, required: boolean): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw new SettingsError(`cannot read the configuration file ${path} (${String(code ?? error)})`);
  }
}
