import { didYouMean } from "./suggest.ts";

/** One value with its position, so that an error can name the line. */
interface ConfigValue {
  readonly value: unknown;
  readonly place: string;
}

export interface ParsedConfig {
  readonly values: ReadonlyMap<string, ConfigValue>;
  /** All errors of the file itself: invalid YAML, no keys, unknown keys. */
  readonly problems: readonly string[];
  /** `file:line:column` of the deepest existing key of the path. */
  placeOf(path: readonly string[]): string;
}

/**
 * Parses YAML into its top-level keys. Loading the parser takes a tenth of a whole scan, so it is loaded only for an
 * existing file.
 */
export async function parseConfig(path: string, source: string, knownKeys: readonly string[]): Promise<ParsedConfig> {
  const { isCollection, isMap, isPair, isScalar, LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const nothing = { values: new Map(), placeOf: () => path };
  if (document.errors.length > 0) {
    return { ...nothing, problems: document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`) };
  }
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return { ...nothing, problems: [] };
  if (!isMap(contents)) return { ...nothing, problems: [`${path}: expected settings as "key: value" lines`] };

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
    return { ...topLevel(document.toJS(), placeOf, knownKeys), placeOf };
  } catch (error) {
    // An undefined alias, or nested aliases that would fill the memory: detected only when it is expanded.
    return { ...nothing, problems: [`${path}: ${error instanceof Error ? error.message : String(error)}`] };
  }
}

function rangeStart(node: unknown): number | undefined {
  if (typeof node !== "object" || node === null || !("range" in node) || !Array.isArray(node.range)) return undefined;
  const [start]: readonly unknown[] = node.range;
  return typeof start === "number" ? start : undefined;
}

function topLevel(
  settings: Readonly<Record<string, unknown>>,
  placeOf: ParsedConfig["placeOf"],
  knownKeys: readonly string[],
): Pick<ParsedConfig, "values" | "problems"> {
  const values = new Map<string, ConfigValue>();
  const problems: string[] = [];
  for (const [key, value] of Object.entries(settings)) {
    const place = placeOf([key]);
    if (knownKeys.includes(key)) values.set(key, { value, place });
    else
      problems.push(
        `${place}: unknown key "${key}"${didYouMean(key, knownKeys) || `; known are ${knownKeys.join(", ")}`}`,
      );
  }
  return { values, problems };
}
