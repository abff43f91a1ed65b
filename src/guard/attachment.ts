import { readRegularFile } from "../host/safe-fs.ts";

/** What the launcher recorded of an ADD. A power cut may have left any part of it, or nothing. */
export interface Attachment {
  /** `started`: the ADD was killed, or is running. */
  readonly phase: "started" | "completed" | "failed";
  /** The boot in which it ran. */
  readonly boot: string;
  /** The plugin that ran. */
  readonly path: string;
  /** The variables of CNI, and PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** The network configuration on its standard input. */
  readonly config: string;
  /** Its standard output. */
  readonly result: string | undefined;
}

/** Three different problems, with three different messages: missing, unreadable, and not what the launcher writes. */
export type AttachmentRead =
  | { readonly kind: "read"; readonly attachment: Attachment }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly error: string }
  | { readonly kind: "unparsable" };

const PHASES = ["started", "completed", "failed"] as const;
const NEWLINE = 10;

export function readAttachment(path: string): AttachmentRead {
  const file = readRegularFile(path);
  if (file.kind === "gone") return { kind: "missing" };
  if (file.kind !== "content") return { kind: "unreadable", error: file.reason };
  const attachment = parseAttachment(Buffer.from(file.text));
  return attachment === undefined ? { kind: "unparsable" } : { kind: "read", attachment };
}

/** The format of src/guard/launcher/record.c: a line each, and after `env`, `config` and `result` that many bytes. */
export function parseAttachment(bytes: Buffer): Attachment | undefined {
  const lines = new Map<string, string>();
  const parts = new Map<string, string>();
  const environment: Record<string, string> = {};
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, at);
    if (end < 0) return undefined;
    const [word = "", ...rest] = bytes.toString("utf8", at, end).split(" ");
    const value = rest.join(" ");
    at = end + 1;
    if (word === "end") return at === bytes.length ? attachmentOf(lines, parts, environment) : undefined;
    if (word !== "env" && word !== "config" && word !== "result") {
      lines.set(word, value);
      continue;
    }
    const size = Number(value);
    if (!Number.isInteger(size) || size < 0 || bytes[at + size] !== NEWLINE) return undefined;
    const part = bytes.toString("utf8", at, at + size);
    at += size + 1;
    if (word === "env") environment[part.slice(0, part.indexOf("="))] = part.slice(part.indexOf("=") + 1);
    else parts.set(word, part);
  }
  return undefined;
}

function attachmentOf(
  lines: ReadonlyMap<string, string>,
  parts: ReadonlyMap<string, string>,
  environment: Attachment["environment"],
): Attachment | undefined {
  const phase = PHASES.find((known) => known === lines.get("phase"));
  const config = parts.get("config");
  if (lines.get("attachment") !== "1" || phase === undefined || config === undefined) return undefined;
  const [boot = "", path = ""] = [lines.get("boot"), lines.get("plugin")];
  return { phase, boot, path, environment, config, result: parts.get("result") };
}
