import * as v from "valibot";
import { sha256Of } from "../../heal/quarantine/file-identity.ts";
import type { HookSettings, Host } from "./hook.ts";
import { AFTER_SCRIPT, afterScript, agentScript, beforeScript, keepScript } from "./openrc.ts";
import { AFTER_UNIT, afterUnit, agentDropIn, agentUnit, beforeUnit, dropIn, keepUnit } from "./units.ts";

export type InstallEntry =
  | { readonly kind: "file"; readonly path: string; readonly content: string; readonly mode: number }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

export const SYSTEM_DIR = "/etc/systemd/system";
const RUNLEVEL = "/etc/runlevels/default";

/** The file with the receipt. It is written on every host. */
export function receiptPath({ manager }: Pick<Host, "manager">): string {
  return manager === "openrc" ? `/etc/init.d/${AFTER_SCRIPT}` : `${SYSTEM_DIR}/${AFTER_UNIT}`;
}

/**
 * The files for this host, in the order of writing: the receipt first, and last what activates the rest. None on hosts
 * that are built from a configuration.
 */
export function filesFor(host: Host, settings: HookSettings, receipt: Receipt): readonly InstallEntry[] {
  if (host.manager === "systemd") return systemdFiles(host, settings, receipt);
  return host.manager === "openrc" ? openrcFiles(host, settings, receipt) : [];
}

function systemdFiles({ services }: Host, settings: HookSettings, receipt: Receipt): readonly InstallEntry[] {
  const after = afterUnit(services, settings);
  const units = [
    { ...after, text: `${receiptLine(receipt)}\n${after.text}` },
    ...(services.some(({ distribution }) => distribution.before === "own-unit")
      ? [beforeUnit(services, settings)]
      : []),
    ...(settings.agent === true ? [agentUnit(settings), agentDropIn()] : []),
    ...(settings.keep === true ? [keepUnit(services, settings)] : []),
    ...services.map((found) => dropIn(found, settings)),
  ];
  return units.map(({ name, text }) => {
    return { kind: "file", path: `${SYSTEM_DIR}/${name}`, content: sealed(text), mode: 0o644 };
  });
}

function openrcFiles({ services }: Host, settings: HookSettings, receipt: Receipt): readonly InstallEntry[] {
  const after = afterScript(services, settings);
  const afterOnly = services.every(({ distribution }) => distribution.before === "after-only");
  const scripts = [
    // Below its interpreter.
    { ...after, text: after.text.replace("\n", () => `\n${receiptLine(receipt)}\n`) },
    ...(afterOnly ? [] : [beforeScript(services, settings)]),
    ...(settings.agent === true ? [agentScript(services, settings)] : []),
    ...(settings.keep === true ? [keepScript(services, settings)] : []),
  ];
  return [
    ...scripts.map(({ name, text }) => {
      return { kind: "file", path: `/etc/init.d/${name}`, content: sealed(text), mode: 0o755 } as const;
    }),
    // What `rc-update add` does; done here so that it also works in an image.
    ...scripts.map(({ name }) => {
      return { kind: "link", path: `${RUNLEVEL}/${name}`, target: `/etc/init.d/${name}` } as const;
    }),
  ];
}

/**
 * What install did besides writing text files, so that uninstall can revert it. It is stored as a comment in one of
 * those files.
 */
const receiptSchema = v.object({
  /** Only if install put it there: one that a package or an operator installed stays. */
  executable: v.optional(v.object({ path: v.string(), sha256: v.string() })),
  /** Directories that did not exist before. */
  directories: v.array(v.string()),
});

export type Receipt = v.InferOutput<typeof receiptSchema>;

export const NO_RECEIPT: Receipt = { directories: [] };

const LINE = /^# Receipt: (\{.*\})$/m;

export function receiptLine(receipt: Receipt): string {
  return `# Receipt: ${JSON.stringify(receipt)}`;
}

/** The receipt in one of our files; empty if it has none, or a damaged one. */
export function receiptIn(text: string | undefined): Receipt {
  const found = LINE.exec(text ?? "")?.[1];
  if (found === undefined) return NO_RECEIPT;
  try {
    const parsed = v.safeParse(receiptSchema, JSON.parse(found));
    return parsed.success ? parsed.output : NO_RECEIPT;
  } catch {
    return NO_RECEIPT;
  }
}

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
