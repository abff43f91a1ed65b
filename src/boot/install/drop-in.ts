import { type HookSettings, limitedHookCommand, type RuntimeService } from "./hook.ts";
import { AGENT_UNIT, KEEP_UNIT } from "./services.ts";
import { AFTER_UNIT, BEFORE_UNIT, commandLine, type Setting, type Unit, unitName } from "./units.ts";

export const DROP_IN = "10-unghost.conf";

/** Additions to the runtime's own unit. They survive upgrades, which replace the unit but not its drop-ins. */
export function dropIn(found: RuntimeService, settings: HookSettings): Unit {
  const { before } = found.distribution;
  const wanted = [...(before === "own-unit" ? [BEFORE_UNIT] : []), AFTER_UNIT];
  const agent = settings.agent === true ? [AGENT_UNIT] : [];
  const keep = settings.keep === true ? [KEEP_UNIT] : [];
  const wants: Setting = {
    key: "Wants",
    value: [...wanted, ...agent, ...keep].join(" "),
    why: "Wants, never Requires: whether they succeed or not, this unit starts.",
  };
  const intro = [
    "After a power cut, pod sandboxes that died with the machine hold their names and addresses, and their pods cannot start. " +
      `unghost heals them when ${unitName(found.service)} starts. See \`unghost history\` for what it did.`,
    ...(before === "after-only" ? [CRIO] : []),
    SWITCH_OFF,
  ];
  const unit = { name: "Unit", settings: [wants] } as const;
  const name = `${unitName(found.service)}.d/${DROP_IN}`;
  if (before !== "in-unit") return { name, intro, sections: [unit] };
  return {
    name,
    intro,
    sections: [unit, { name: "Service", settings: [inUnitStep(settings)], leftOut: IN_UNIT_LEFT_OUT }],
  };
}

export const SWITCH_OFF =
  "To switch it off, run `unghost uninstall`, or empty this file and run `systemctl daemon-reload`.";

export const CRIO =
  "CRI-O detects a reboot and cleans up before it listens (crio-wipe, and its own restore at start), so nothing " +
  "runs before it. Once it is up, only what is left is scanned.";

function inUnitStep(settings: HookSettings): Setting {
  return {
    key: "ExecStartPre",
    // Uses env: systemd before 239 needs an absolute path, and timeout is elsewhere on NixOS.
    value: `-${commandLine(["/usr/bin/env", ...limitedHookCommand("before", settings)])}`,
    why:
      "The runtime is a child of this service, so this is the last moment before it. The leading minus: a failure changes nothing. " +
      "This unit has no start timeout (TimeoutStartSec=0), so the step has its own deadline, and timeout kills it if it " +
      "runs longer. It runs at every restart of " +
      "the service too, while pods live on (KillMode=process): it does nothing unless the machine was rebooted and no pod " +
      "is alive.",
  };
}

const IN_UNIT_LEFT_OUT: readonly string[] = [
  "ExecStartPost: the unit would count as starting until it ends, and it would run only once the cluster answers, which a ghost " +
    "may prevent. unghost-boot-after.service waits for the runtime's socket instead.",
  "Any hardening: it would apply to the service, not to our step.",
];
