import type { OutputFormat } from "./output-format.ts";

/** Machine-readable output. YAML is loaded on demand, to save start-up time. */
export async function formatDocument(document: unknown, format: Exclude<OutputFormat, "table">): Promise<string> {
  if (format === "json") return `${JSON.stringify(document, undefined, 2).replace(UNSAFE, jsonEscape)}\n`;
  const { Document, visit } = await import("yaml");
  const yaml = new Document(document, { aliasDuplicateObjects: false });
  visit(yaml, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && NOT_PLAIN.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return yaml.toString({ lineWidth: 0 }).replace(UNSAFE, yamlEscape);
}

/** YAML can escape these only between double quotes; a tab is valid in YAML but not safe on a terminal. */
const NOT_PLAIN = /[\p{Cc}\u2028\u2029\p{Cf}]/u;

/**
 * Control and invisible characters that both formats would print. This output is also read on terminals, and its names
 * may be hostile.
 */
const UNSAFE = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu;

function jsonEscape(character: string): string {
  return character.split("").map(unitEscape).join("");
}

/** YAML does not support JSON's surrogate pairs, and has its own longer escape. */
function yamlEscape(character: string): string {
  const codePoint = character.codePointAt(0) ?? 0;
  return codePoint > 0xffff ? `\\U${codePoint.toString(16).padStart(8, "0")}` : unitEscape(character);
}

function unitEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
