import { AFTER_SECONDS, GRACE_SECONDS, type HookSettings, hookCommand, type RuntimeService } from "./hook.ts";

/** One line of a unit, with the reason for it. */
export interface Setting {
  readonly key: string;
  readonly value: string;
  readonly why?: string;
}

/** Switches that need no explanation. */
export function on(...keys: readonly string[]): readonly Setting[] {
  return keys.map((key) => ({ key, value: "yes" }));
}

export interface UnitSection {
  readonly name: "Unit" | "Service" | "Install";
  readonly settings: readonly Setting[];
  /** What is left out on purpose, and why. */
  readonly leftOut?: readonly string[];
}

export interface Unit {
  /** With its suffix. */
  readonly name: string;
  readonly intro: readonly string[];
  readonly sections: readonly UnitSection[];
}

const WIDTH = 100;

export function unitText({ intro, sections }: Pick<Unit, "intro" | "sections">): string {
  const parts = [intro.map((text) => comment(text)).join("\n#\n"), ...sections.map(sectionText)];
  return `${parts.join("\n\n")}\n`;
}

function sectionText({ name, settings, leftOut = [] }: UnitSection): string {
  const lines = settings.map(({ key, value, why }) => `${why === undefined ? "" : `${comment(why)}\n`}${key}=${value}`);
  const reasons = leftOut.length === 0 ? [] : ["# Left out on purpose:", ...leftOut.map((text) => comment(text, "- "))];
  return [`[${name}]`, ...lines, ...reasons].join("\n");
}

/**
 * Text wrapped into comment lines. systemd joins a comment that ends in a backslash with the next line, so ours never
 * do.
 */
export function comment(text: string, bullet = ""): string {
  const lines: string[] = [];
  let line = `# ${bullet}`;
  for (const word of text.split(" ")) {
    if (line.length + word.length > WIDTH) {
      lines.push(line.trimEnd());
      line = `# ${" ".repeat(bullet.length)}`;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join("\n");
}

/** A command line for ExecStart: each argument stays one word, and nothing is expanded. */
export function commandLine(words: readonly string[]): string {
  return words.map(unitWord).join(" ");
}

function unitWord(word: string): string {
  const inert = word.replace(/%/g, "%%").replace(/\$/g, "$$$$");
  if (/^[\w@+=:,./%$-]+$/.test(inert)) return inert;
  return `"${inert.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}

/**
 * For steps that heal: they run the node's containerd and CNI plug-ins as root in the host's mount namespace. Only
 * rights are removed that no runtime and no plug-in needs.
 */
export const HEALING: readonly Setting[] = [
  {
    key: "CapabilityBoundingSet",
    value:
      "~CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_BLOCK_SUSPEND CAP_LEASE CAP_LINUX_IMMUTABLE CAP_MAC_ADMIN CAP_MAC_OVERRIDE " +
      "CAP_SYS_BOOT CAP_SYS_PACCT CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_WAKE_ALARM",
    why:
      "Taken away one by one, because the cluster chooses the plug-ins: they need CAP_NET_ADMIN and CAP_NET_RAW for links and " +
      "rules, CAP_SYS_ADMIN to enter and unmount network namespaces, CAP_SYS_MODULE for what iptables loads.",
  },
  {
    key: "RestrictAddressFamilies",
    value: "AF_UNIX AF_NETLINK AF_INET AF_INET6 AF_PACKET",
    why: "The runtime's socket; links and rules; the Kubernetes API; plug-ins that announce addresses.",
  },
  { key: "SystemCallArchitectures", value: "native" },
  {
    key: "SystemCallFilter",
    value: "~@clock @cpu-emulation @debug @obsolete @raw-io @reboot @swap",
    why: "unghost does not set clocks, reboot or trace. Refused with an error, not with a killed process.",
  },
  { key: "SystemCallErrorNumber", value: "EPERM" },
  ...on("RestrictRealtime", "RestrictSUIDSGID", "LockPersonality"),
  { key: "MemoryMax", value: "1G", why: "More than this is a mistake, and must not cost the node its pods." },
];

export const HEALING_LEFT_OUT: readonly string[] = [
  "ProtectSystem, ProtectHome, PrivateTmp, PrivateDevices, PrivateMounts, ProtectKernelTunables, ProtectKernelModules, " +
    "ProtectKernelLogs, ProtectControlGroups, ProtectProc, ReadWritePaths and their like: each of them gives the process a mount " +
    "namespace of its own. A network namespace unmounted in there stays mounted on the host, and the ghost with it.",
  "PrivateNetwork, RestrictNamespaces: plug-ins work on the host's links and enter the pods' namespaces.",
  "ProtectHostname: a name that arrives late (DHCP) would not be seen, and it is the node's name.",
  "MemoryDenyWriteExecute: the executable compiles its code as it runs.",
  "UMask: directories that containerd makes must keep the modes that pods rely on.",
  "CPUQuota, IOWeight: pods wait for this step; it should be over soon.",
];

/** For a service that changes no kernel settings. */
export const NO_KERNEL: readonly Setting[] = on(
  "ProtectKernelTunables",
  "ProtectKernelModules",
  "ProtectKernelLogs",
  "ProtectControlGroups",
  "ProtectClock",
  "NoNewPrivileges",
);

/** For a service that creates no namespaces and needs only the common system calls. */
export const NO_SYSTEM: readonly Setting[] = [
  ...on("RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality"),
  { key: "SystemCallArchitectures", value: "native" },
  { key: "SystemCallFilter", value: "@system-service" },
  { key: "SystemCallErrorNumber", value: "EPERM" },
  { key: "UMask", value: "0077" },
];

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
