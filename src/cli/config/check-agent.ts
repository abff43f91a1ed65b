import * as v from "valibot";
import { AGENT_KEY } from "../config-file.ts";
import type { Raw } from "../setting-values.ts";
import { AgentSection, type AgentSettings } from "./agent-schema.ts";
import type { ParsedConfig } from "./parse.ts";

type CheckedAgent =
  | { readonly ok: true; readonly settings: AgentSettings }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Errors about keys, or about several values at once; every other one is about the value at its path. */
const ABOUT_KEYS: ReadonlySet<string> = new Set(["raw_check", "partial_check", "loose_object"]);
/** Longer values are not quoted. */
const MAX_QUOTED = 60;
/** Line 9 before line 10. */
const IN_FILE_ORDER = new Intl.Collator("en", { numeric: true });

/** The agent's section of the file, with flags and environment overriding its values; or all its errors. */
export function checkAgentConfig(
  parsed: Pick<ParsedConfig, "values" | "placeOf"> | undefined,
  overrides: ReadonlyMap<string, Raw>,
): CheckedAgent {
  const inFile = parsed?.values.get(AGENT_KEY)?.value ?? {};
  const overriding = Object.fromEntries([...overrides].map(([key, { value }]) => [key, value]));
  const merged: unknown = typeof inFile === "object" && !Array.isArray(inFile) ? { ...inFile, ...overriding } : inFile;
  const checked = v.safeParse(AgentSection, merged);
  if (checked.success) return { ok: true, settings: checked.output };
  const problems = checked.issues.map((issue) => {
    const path = (issue.path ?? []).map(({ key }) => String(key));
    const override = overrides.get(path[0] ?? "");
    const place = override?.from ?? placeInFile(parsed, [AGENT_KEY, ...path]);
    const got = !ABOUT_KEYS.has(issue.type) ? `, got ${quoted(valueAt(merged, path))}` : "";
    return `${place}: ${issue.message}${got}`;
  });
  return { ok: false, problems: problems.toSorted(IN_FILE_ORDER.compare) };
}

/** Without a file, the errors are about flags and variables. */
function placeInFile(parsed: Pick<ParsedConfig, "placeOf"> | undefined, path: readonly string[]): string {
  return parsed === undefined ? dotted(path) : `${parsed.placeOf(path)}: ${dotted(path)}`;
}

function dotted(path: readonly string[]): string {
  return path.map((key, index) => (/^\d+$/.test(key) ? `[${key}]` : index === 0 ? key : `.${key}`)).join("");
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
}

/** The value at a path of keys; a scalar applies to everything below it. */
export function valueAt(inside: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path;
  if (key === undefined || typeof inside !== "object" || inside === null) return inside;
  return valueAt(Object.entries(inside).find(([name]) => name === key)?.[1], rest);
}
