import type { OutputFormat } from "./output-format.ts";

/** Machine-readable output. YAML is loaded only when asked for: it would cost every other run its start-up time. */
export async function formatDocument(document: unknown, format: Exclude<OutputFormat, "table">): Promise<string> {
  if (format === "json") return `${JSON.stringify(document, undefined, 2)}\n`;
  const { stringify } = await import("yaml");
  return stringify(document, { lineWidth: 0 });
}
