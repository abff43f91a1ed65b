export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

export function list(lines: readonly string[], tag: "ol" | "ul" = "ul"): string {
  return `<${tag}>\n${lines.map((line) => `<li>${escaped(line)}</li>`).join("\n")}\n</${tag}>`;
}

/** GitHub's anchor of a heading: the documents link to sections by it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
