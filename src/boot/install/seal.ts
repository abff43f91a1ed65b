import { sha256Of } from "../../heal/quarantine/file-identity.ts";

const HEADER = "# Written by `unghost install`, removed by `unghost uninstall`.";
const SEALED = /^# Written by `unghost install`, removed by `unghost uninstall`\. Seal: ([0-9a-f]{16})\n/m;

/**
 * Adds the line that marks a file as ours. Its seal is a checksum of the rest: it distinguishes a file of an older
 * unghost, which may be replaced, from one that an operator modified, which may not.
 */
export function sealed(content: string): string {
  // The kernel reads a script's interpreter from its first line, so our line follows it.
  const isScript = content.startsWith("#!");
  const text = isScript && !content.includes("\n") ? `${content}\n` : content;
  const [first = ""] = isScript ? text.split("\n", 1) : [];
  const top = first === "" ? "" : `${first}\n`;
  return `${top}${HEADER} Seal: ${checksum(text)}\n${text.slice(top.length)}`;
}

export type Authorship = "ours" | "changed" | "foreign";

export function authorship(text: string): Authorship {
  const found = SEALED.exec(text);
  if (found === null) return text.includes(HEADER) ? "changed" : "foreign";
  const rest = text.slice(0, found.index) + text.slice(found.index + found[0].length);
  return checksum(rest) === found[1] ? "ours" : "changed";
}

function checksum(text: string): string {
  return sha256Of(text).slice(0, 16);
}
