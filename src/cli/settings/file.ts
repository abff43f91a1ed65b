import { type BigIntStats, statSync } from "node:fs";
import { dirname } from "node:path";
import { isCollection, isMap, isPair, isScalar, LineCounter, parseDocument } from "yaml";
import { watchDirectories } from "../../durable/directory-watch.ts";
import { errorCode } from "../../host/source.ts";
import { didYouMean } from "../suggest.ts";
import { NODE } from "./table.ts";

const KNOWN_KEYS = [...Object.keys(NODE), "agent"];

export interface ConfigFile {
  /** By known key. */
  readonly values: ReadonlyMap<string, unknown>;
  /** All errors of the file itself: invalid YAML, no keys, unknown keys. */
  readonly problems: readonly string[];
  /** `file:line:column` of the deepest existing key of the path. */
  placeOf(path: readonly string[]): string;
}

/** Parses YAML into its top-level keys. */
export function parseConfig(path: string, source: string): ConfigFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const without = (...problems: readonly string[]): ConfigFile => ({
    values: new Map(),
    problems,
    placeOf: () => path,
  });
  const { contents, errors } = document;
  if (errors.length > 0) return without(...errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`));
  if (contents === null || (isScalar(contents) && contents.value === null)) return without();
  if (!isMap(contents)) return without(`${path}: expected settings as "key: value" lines`);

  const placeOf = (keys: readonly string[]): string => {
    let place = path;
    let inside: unknown = contents;
    for (const key of keys) {
      if (!isCollection(inside)) break;
      const items: readonly unknown[] = inside.items;
      const item = isMap(inside) ? inside.items.find((pair) => String(pair.key) === key) : items[Number(key)];
      const start = rangeStart(isPair(item) ? item.key : item);
      if (start !== undefined) place = at(start);
      inside = isPair(item) ? item.value : item;
    }
    return place;
  };
  try {
    const values = new Map<string, unknown>(Object.entries(document.toJS() as object));
    const unknown = [...values.keys()].filter((key) => !KNOWN_KEYS.includes(key));
    const problems = unknown.map((key) => {
      const hint = didYouMean(key, KNOWN_KEYS) || `; known are ${KNOWN_KEYS.join(", ")}`;
      return `${placeOf([key])}: unknown key "${key}"${hint}`;
    });
    return { values, problems, placeOf };
  } catch (error) {
    // An undefined alias, or nested aliases that would fill the memory: detected only when it is expanded.
    return without(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function rangeStart(node: unknown): number | undefined {
  if (typeof node !== "object" || node === null || !("range" in node) || !Array.isArray(node.range)) return undefined;
  const [start]: readonly unknown[] = node.range;
  return typeof start === "number" ? start : undefined;
}

export interface WatchTiming {
  /** A file is written in several steps: without a change for this long, it is complete. */
  readonly quietMs: number;
  /** The interval of checks without any event. */
  readonly everyMs: number;
}

const TIMING: WatchTiming = { quietMs: 250, everyMs: 5000 };

/**
 * Calls back when the file has changed, was created or was removed. Its directory is watched, because editors replace
 * the file and a ConfigMap changes the link to it; events may get lost (and links may lead anywhere), so the file is
 * also checked periodically. Returns a function to stop.
 */
export function watchConfigFile(path: string, onChange: () => void, timing: WatchTiming = TIMING): () => void {
  let last = identityOf(path);
  let pending: NodeJS.Timeout | undefined;
  const directory = watchDirectories(() => {
    clearTimeout(pending);
    pending = setTimeout(check, timing.quietMs).unref();
  });

  function check(): void {
    directory.refresh([dirname(path)]);
    const now = identityOf(path);
    if (now === last) return;
    last = now;
    onChange();
  }

  directory.refresh([dirname(path)]);
  const periodic = setInterval(check, timing.everyMs).unref();
  return () => {
    clearInterval(periodic);
    clearTimeout(pending);
    directory.close();
  };
}

/** Identifies a state of the file; follows links, like reading it does. */
function identityOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs }: BigIntStats = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return errorCode(error) ?? String(error);
  }
}
