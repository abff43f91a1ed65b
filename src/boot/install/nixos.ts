import type { RuntimeService } from "./distribution.ts";
import { dropIn, SWITCH_OFF } from "./drop-in.ts";
import type { HookSettings } from "./hook-command.ts";
import { keepUnit } from "./keep-service.ts";
import { comment, type Setting, type Unit } from "./unit-text.ts";
import { afterUnit, beforeUnit } from "./units.ts";

/** A placeholder for the executable until the text is Nix, because a store path would be quoted. */
const PROGRAM = "@unghost@";

/** The same units as a NixOS module: files that install wrote into /etc would be lost with the next rebuild. */
export function nixosModule(services: readonly RuntimeService[], settings: HookSettings): string {
  const called = { ...settings, program: PROGRAM };
  const ownUnit = services.some(({ distribution }) => distribution.before === "own-unit");
  const units = [
    ...(ownUnit ? [beforeUnit(services, called)] : []),
    afterUnit(services, called),
    ...(settings.keep === true ? [keepUnit(services, called)] : []),
  ];
  return `# unghost.nix, to be added to the imports of configuration.nix.
${comment("A ghost is a pod sandbox that died with the machine and still holds its name, so that its pod cannot start again.")}
${comment("nix-ld lets the executable run as it is: patching it would damage the program inside.")}
{ ... }:
let
  unghost = ${nixString(settings.program)}; # wherever you put it
in
{
  programs.nix-ld.enable = true;
${services.map((found) => service(found.service, dropIn(found, called))).join("")}${units
  .map((unit) => service(unit.name.replace(/\.service$/, ""), unit))
  .join("")}}
`;
}

function service(name: string, { intro, sections }: Unit): string {
  const sets = sections.map(({ name: section, settings }) => {
    const wants = settings.filter(({ key }) => key === "Wants");
    const others = settings.filter(({ key }) => key !== "Wants");
    const attribute = section === "Unit" ? "unitConfig" : "serviceConfig";
    const set = others.length === 0 ? "" : `    ${attribute} = {\n${attributes(others)}    };\n`;
    // A separate option: it extends the service's module, where unitConfig would conflict.
    return `${wants.map(({ value }) => `    wants = [ ${value.split(" ").map(nixString).join(" ")} ];\n`).join("")}${set}`;
  });
  const why = intro
    .filter((text) => text !== SWITCH_OFF)
    .map((text) => comment(text))
    .join("\n#\n")
    .replace(/^/gm, "  ");
  return `\n${why}\n  systemd.services.${nixString(name)} = {\n${sets.join("")}  };\n`;
}

function attributes(settings: readonly Setting[]): string {
  return settings
    .map(({ key, value, why }) => {
      const reason = why === undefined ? "" : `${comment(why).replace(/^/gm, "      ")}\n`;
      // A list extends the service's module.
      const nix = key === "ExecStartPre" ? `[ ${nixString(value)} ]` : nixString(value);
      return `${reason}      ${key} = ${nix};\n`;
    })
    .join("");
}

function nixString(text: string): string {
  const escaped = text.replace(/[\\"]/g, "\\$&").replace(/\$\{/g, "\\${");
  return `"${escaped.replaceAll(PROGRAM, `\${unghost}`)}"`;
}
