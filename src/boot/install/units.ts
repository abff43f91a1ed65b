import type { RuntimeService } from "./distribution.ts";
import { HEALING, HEALING_LEFT_OUT } from "./hardening.ts";
import { AFTER_SECONDS, GRACE_SECONDS, type HookSettings, hookCommand } from "./hook-command.ts";
import { commandLine, type Setting, type Unit } from "./unit-text.ts";

export const BEFORE_UNIT = "unghost-boot.service";
export const AFTER_UNIT = "unghost-boot-after.service";

const WHAT =
  "A ghost is a pod sandbox that died with the machine and still holds its name or its address, so that its pod cannot start " +
  "again. unghost removes the ones that are proven dead. See `unghost history` for what it did.";

const NO_WAIT =
  "Nothing requires this unit: the runtime's unit wants it, so that it may fail, hang until its timeout or be deleted, and " +
  "the node comes up all the same. Nothing has to be enabled either.";

/** Heals before the runtime starts, in a separate unit. */
export function beforeUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  const waiting = services.flatMap(({ service, distribution }) => [service, ...distribution.kubelets]);
  const data = services.flatMap(({ distribution }) => distribution.dataDirs);
  const snaps = services.some(({ distribution }) => distribution.name === "microk8s") ? " snapd.mounts.target" : "";
  return {
    name: BEFORE_UNIT,
    intro: [
      WHAT,
      "This step runs before the container runtime, at every start of it; it does nothing unless the machine was rebooted and no " +
        "pod is alive. It borrows the runtime's own program on a private socket, because the runtime itself is not up yet.",
      NO_WAIT,
    ],
    sections: [
      {
        name: "Unit",
        settings: [
          { key: "Description", value: "Heal ghost pod sandboxes before the container runtime starts" },
          ...condition(settings),
          { key: "RequiresMountsFor", value: ["/var/lib/cni", ...data, settings.stateDir].join(" ") },
          {
            key: "After",
            value: `local-fs.target network.target${snaps}`,
            why: "No later than the runtime itself: plug-ins find the links and rules they would find then.",
          },
          { key: "Before", value: unique(waiting.map(unitName)).join(" ") },
        ],
      },
      {
        name: "Service",
        settings: [
          { key: "Type", value: "oneshot" },
          { key: "RemainAfterExit", value: "no", why: "So that the next start of the runtime runs it again." },
          { key: "ExecStart", value: commandLine(hookCommand("before", settings)) },
          {
            key: "TimeoutStartSec",
            value: `${settings.deadlineSeconds + GRACE_SECONDS}s`,
            why: "The step has its own deadline; systemd kills it if it runs longer. Never 0 or infinity: the runtime waits for it.",
          },
          {
            key: "KillMode",
            value: "control-group",
            why: "Whatever it started ends with it: a borrowed runtime left behind would hold the lock on the real one's records.",
          },
          { key: "TimeoutStopSec", value: "10s" },
          { key: "SyslogIdentifier", value: "unghost" },
          ...HEALING,
        ],
        leftOut: [
          ...HEALING_LEFT_OUT,
          "NoNewPrivileges: under SELinux it keeps containerd, which this step starts, from entering its own domain.",
        ],
      },
    ],
  };
}

/** Heals what needs a running runtime or CNI agent. */
export function afterUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  return {
    name: AFTER_UNIT,
    intro: [
      WHAT,
      "This step waits until the container runtime answers, then heals what could not be healed before, until nothing is left " +
        "or its time is up.",
      NO_WAIT,
    ],
    sections: [
      {
        name: "Unit",
        settings: [
          { key: "Description", value: "Heal ghost pod sandboxes once the container runtime is up" },
          ...condition(settings),
          ...afterOrdering(services),
        ],
      },
      {
        name: "Service",
        settings: [
          {
            key: "Type",
            value: "simple",
            why: "Started is enough: as a oneshot the boot would count as unfinished for as long as it waits for the runtime.",
          },
          { key: "ExecStart", value: commandLine(hookCommand("after", settings)) },
          { key: "Restart", value: "no" },
          {
            key: "RuntimeMaxSec",
            value: `${AFTER_SECONDS + GRACE_SECONDS}s`,
            why: "The step has its own deadline; systemd kills it if it runs longer.",
          },
          { key: "TimeoutStopSec", value: "10s" },
          { key: "SyslogIdentifier", value: "unghost" },
          { key: "NoNewPrivileges", value: "yes" },
          ...HEALING,
          { key: "OOMScoreAdjust", value: "500", why: "Pods are up by now. Should memory be short, this goes first." },
        ],
        leftOut: HEALING_LEFT_OUT,
      },
    ],
  };
}

/** An embedded runtime's unit is ready only when the API server is, and that may be the pod that a ghost blocks. */
function afterOrdering(services: readonly RuntimeService[]): readonly Setting[] {
  if (services.some(({ distribution }) => distribution.before === "in-unit")) {
    const names = services.map(({ service }) => unitName(service)).join(" or ");
    return [
      {
        key: "After",
        value: "local-fs.target",
        why:
          `Not after ${names}: that unit counts as started only once the cluster answers, and the ghost may be what keeps it ` +
          "from answering. The step waits for the runtime's socket instead.",
      },
    ];
  }
  const own = services.some(({ distribution }) => distribution.before === "own-unit") ? [BEFORE_UNIT] : [];
  return [{ key: "After", value: [...own, ...services.map(({ service }) => unitName(service))].join(" ") }];
}

export function condition({ program }: HookSettings): readonly Setting[] {
  return [
    {
      key: "ConditionPathExists",
      value: program,
      why: "Should somebody delete the executable, this is skipped without a complaint.",
    },
  ];
}

export function unitName(service: string): string {
  return `${service}.service`;
}

function unique(words: readonly string[]): readonly string[] {
  return [...new Set(words)];
}
