import { AGENT_SCRIPT, agentScript, agentUnit } from "./agent-service.ts";
import type { Host } from "./distribution.ts";
import { dropIn } from "./drop-in.ts";
import type { HookSettings } from "./hook-command.ts";
import { KEEP_SCRIPT, keepScript, keepUnit } from "./keep-service.ts";
import { AFTER_SCRIPT, afterScript, BEFORE_SCRIPT, beforeScript } from "./openrc.ts";
import { type Receipt, receiptLine } from "./receipt.ts";
import { sealed } from "./seal.ts";
import { type Unit, unitText } from "./unit-text.ts";
import { AFTER_UNIT, afterUnit, beforeUnit } from "./units.ts";

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
  const ownUnit = services.some(({ distribution }) => distribution.before === "own-unit");
  return [
    unitFile(afterUnit(services, settings), receiptLine(receipt)),
    ...(ownUnit ? [unitFile(beforeUnit(services, settings))] : []),
    ...(settings.agent === true ? [unitFile(agentUnit(settings))] : []),
    ...(settings.keep === true ? [unitFile(keepUnit(services, settings))] : []),
    ...services.map((found) => unitFile(dropIn(found, settings))),
  ];
}

function unitFile(unit: Unit, receipt?: string): InstallEntry {
  const text = receipt === undefined ? unitText(unit) : `${receipt}\n${unitText(unit)}`;
  return { kind: "file", path: `${SYSTEM_DIR}/${unit.name}`, content: sealed(text), mode: 0o644 };
}

function openrcFiles({ services }: Host, settings: HookSettings, receipt: Receipt): readonly InstallEntry[] {
  const [shebang, ...rest] = afterScript(services, settings).split("\n");
  const after = [shebang, receiptLine(receipt), ...rest].join("\n");
  const afterOnly = services.every(({ distribution }) => distribution.before === "after-only");
  const scripts = [
    { name: AFTER_SCRIPT, text: after },
    ...(afterOnly ? [] : [{ name: BEFORE_SCRIPT, text: beforeScript(services, settings) }]),
    ...(settings.agent === true ? [{ name: AGENT_SCRIPT, text: agentScript(services, settings) }] : []),
    ...(settings.keep === true ? [{ name: KEEP_SCRIPT, text: keepScript(services, settings) }] : []),
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
