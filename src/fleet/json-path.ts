/**
 * kubectl's JSONPath templates: text, `{.items[*].node}`, `{range .items[*]}…{end}`, `{"\n"}`; in a path names, `*`,
 * `..name`, escaped dots, indexes, slices, `['name']`, several of these at once, and filters such as `[?(@.verdict=="ghosts")]`.
 */
export class TemplateError extends Error {}

export function renderJsonPath(template: string, document: unknown): string {
  const { nodes, rest } = parseNodes(tokens(template), false);
  if (rest.length > 0) throw new TemplateError("{end} has no {range}");
  return render(nodes, document);
}

/** The values of all paths in a template; its text is left out. */
export function valuesOfTemplate(template: string, document: unknown): readonly unknown[] {
  const collect = (nodes: readonly TemplateNode[], value: unknown): readonly unknown[] =>
    nodes.flatMap((node) => {
      if (node.kind === "text") return [];
      const values = valuesAt(node.path, value);
      return node.kind === "path" ? values : values.flatMap((inner) => collect(node.body, inner));
    });
  return collect(parseNodes(tokens(template), false).nodes, document);
}

/** The values at a path without braces, such as `.status.verdict`. */
export function valuesAt(path: string, document: unknown): readonly unknown[] {
  return stepsOf(path).reduce<readonly unknown[]>((values, step) => step(values), [document]);
}

/** JSON as Go writes it: with sorted keys, and without characters that HTML has a meaning for. */
export function goJson(value: unknown, indent?: string): string {
  const text = JSON.stringify(sortedKeys(value), undefined, indent);
  return text.replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(sortedEntries(value).map(([key, inner]) => [key, sortedKeys(inner)]));
}

export function sortedEntries(value: object): readonly (readonly [string, unknown])[] {
  return Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

function valueInWords(value: unknown): string {
  return typeof value === "string" ? value : goJson(value);
}

type TemplateNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "range"; readonly path: string; readonly body: readonly TemplateNode[] };

interface Token {
  readonly kind: "text" | "expression";
  readonly text: string;
}

function tokens(template: string): readonly Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < template.length) {
    const open = template.indexOf("{", at);
    if (open === -1) break;
    if (open > at) found.push({ kind: "text", text: template.slice(at, open) });
    const close = closingBrace(template, open);
    found.push({ kind: "expression", text: template.slice(open + 1, close).trim() });
    at = close + 1;
  }
  if (at < template.length) found.push({ kind: "text", text: template.slice(at) });
  return found;
}

/** A brace in quotes belongs to the text. */
function closingBrace(template: string, open: number): number {
  let quote = "";
  for (let at = open + 1; at < template.length; at++) {
    const character = template[at] ?? "";
    if (quote !== "" && character === "\\") at++;
    else if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (character === "}") return at;
  }
  throw new TemplateError(`"${template.slice(open)}" has no closing brace`);
}

function parseNodes(
  given: readonly Token[],
  isInRange: boolean,
): { readonly nodes: readonly TemplateNode[]; readonly rest: readonly Token[] } {
  const nodes: TemplateNode[] = [];
  let rest = given;
  for (let [token] = rest; token !== undefined; [token] = rest) {
    rest = rest.slice(1);
    if (token.kind === "text") nodes.push(token as TemplateNode);
    else if (token.text === "end") {
      if (!isInRange) throw new TemplateError("{end} has no {range}");
      return { nodes, rest };
    } else if (/^range\s/.test(token.text)) {
      const inner = parseNodes(rest, true);
      nodes.push({ kind: "range", path: token.text.slice("range".length).trim(), body: inner.nodes });
      ({ rest } = inner);
    } else nodes.push(expression(token.text));
  }
  if (isInRange) throw new TemplateError("{range} has no {end}");
  return { nodes, rest };
}

function expression(text: string): TemplateNode {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(text)) return { kind: "text", text: JSON.parse(text) as string };
  if (/^'[^']*'$/s.test(text)) return { kind: "text", text: text.slice(1, -1) };
  return { kind: "path", path: text };
}

function render(nodes: readonly TemplateNode[], document: unknown): string {
  return nodes
    .map((node) => {
      if (node.kind === "text") return node.text;
      const values = valuesAt(node.path, document);
      if (node.kind === "path") return values.map(valueInWords).join(" ");
      return values.map((value) => render(node.body, value)).join("");
    })
    .join("");
}

/** From all values so far to the next ones: `['a','b']` is the a of all, then the b of all. */
type Step = (values: readonly unknown[]) => readonly unknown[];
type Lookup = (value: unknown) => readonly unknown[];

/** A backslash takes the meaning from the character behind it, such as the dots of a label. */
const IDENTIFIER = String.raw`(?:\\.|[^\s.,[\](){}$@|'"*\\])+`;
const NAME = new RegExp(String.raw`^\.?(${IDENTIFIER}|\*)`);
const DEEP = new RegExp(String.raw`^\.\.(${IDENTIFIER})`);
const BRACKET = /^\[(\?\((?:[^()"']|"[^"]*"|'[^']*')*\)|'[^']*'|"[^"]*"|[^\]]*)\]/;

function stepsOf(path: string): readonly Step[] {
  const steps: Step[] = [];
  let rest = path.replace(/^[$@]/, "");
  while (rest !== "" && rest !== ".") {
    const deep = DEEP.exec(rest);
    const bracket = BRACKET.exec(rest);
    const name = NAME.exec(rest);
    if (deep !== null) steps.push(each((value) => anywhere(value, unescaped(deep[1] ?? ""))));
    else if (bracket !== null) steps.push(bracketStep(bracket[1] ?? "", path));
    else if (name !== null) steps.push(each(name[1] === "*" ? children : named(name[1] ?? "")));
    const [taken] = deep ?? bracket ?? name ?? [];
    if (taken === undefined) throw new TemplateError(`"${path}" is no path: it is not understood from "${rest}" on`);
    rest = rest.slice(taken.length);
  }
  return steps;
}

function each(lookup: Lookup): Step {
  return (values) => values.flatMap(lookup);
}

function named(name: string): Lookup {
  const plain = unescaped(name);
  return (value) => field(value, plain);
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, "$1");
}

/** A comma in quotes belongs to the name. */
const PARTS = /(?:'[^']*'|"[^"]*"|[^,'"])+/g;

function bracketStep(text: string, path: string): Step {
  if (text === "*") return each(children);
  if (text.startsWith("?(")) return each(filterStep(text.slice(2, -1), path));
  const lookups = (text.match(PARTS) ?? []).map((part) => bracketLookup(part.trim(), path));
  if (lookups.length === 0) throw new TemplateError(`"[${text}]" in "${path}" is empty`);
  return (values) => lookups.flatMap((lookup) => values.flatMap(lookup));
}

function bracketLookup(text: string, path: string): Lookup {
  const [, quoted] = /^['"](.*)['"]$/s.exec(text) ?? [];
  if (quoted !== undefined) return named(quoted);
  if (/^-?\d+$/.test(text)) return (value) => (Array.isArray(value) ? [value.at(Number(text))].filter(isThere) : []);
  const [, from, to, by = ""] = /^(-?\d*):(-?\d*)(?::(\d*))?$/.exec(text) ?? [];
  if (from === undefined || to === undefined || by === "0")
    throw new TemplateError(`"[${text}]" in "${path}" is not supported`);
  const [start, end] = [from === "" ? undefined : Number(from), to === "" ? undefined : Number(to)];
  const step = by === "" ? 1 : Number(by);
  return (value) =>
    Array.isArray(value) ? (value.slice(start, end) as unknown[]).filter((_, index) => index % step === 0) : [];
}

const FILTER = /^\s*@([^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*("[^"]*"|'[^']*'|true|false|-?[\d.]+)\s*)?$/;

function filterStep(text: string, path: string): Lookup {
  const [matched, at = "", operator, literal = ""] = FILTER.exec(text) ?? [];
  if (matched === undefined) throw new TemplateError(`the filter "?(${text})" in "${path}" is not supported`);
  const wanted = /^['"]/.test(literal) ? literal.slice(1, -1) : (JSON.parse(literal || "null") as unknown);
  const fits = (value: unknown): boolean => {
    const [found] = valuesAt(at, value);
    if (operator === undefined) return found !== undefined;
    return compare(found, operator, wanted);
  };
  return (value) => (Array.isArray(value) ? value.filter(fits) : []);
}

function compare(found: unknown, operator: string, wanted: unknown): boolean {
  if (operator === "==") return found === wanted;
  if (operator === "!=") return found !== wanted;
  const areComparable =
    (typeof found === "number" && typeof wanted === "number") ||
    (typeof found === "string" && typeof wanted === "string");
  if (!areComparable) return false;
  if (operator === "<") return found < wanted;
  if (operator === "<=") return found <= wanted;
  return operator === ">" ? found > wanted : found >= wanted;
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return typeof value === "object" && value !== null ? sortedEntries(value).map(([, inner]) => inner) : [];
}

function field(value: unknown, name: string): readonly unknown[] {
  const isObject = typeof value === "object" && value !== null && Object.hasOwn(value, name);
  return isObject ? [Reflect.get(value, name)].filter(isThere) : [];
}

function anywhere(value: unknown, name: string): readonly unknown[] {
  return [...field(value, name), ...children(value).flatMap((child) => anywhere(child, name))];
}

function isThere(value: unknown): boolean {
  return value !== undefined;
}
