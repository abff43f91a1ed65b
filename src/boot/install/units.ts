import {
  AFTER_SECONDS,
  agentCommand,
  embeddedHookCommand,
  GRACE_SECONDS,
  type HookSettings,
  hookCommand,
  keepCommand,
  type RuntimeService,
} from "./hook.ts";

/** A unit of systemd, or a drop-in of one. The module for NixOS is made from its text. */
export interface Unit {
  /** With its suffix. */
  readonly name: string;
  /** Comments, then its sections; a comment in a section is about the setting below it. */
  readonly text: string;
}

export const BEFORE_UNIT = "unghost-boot.service";
export const AFTER_UNIT = "unghost-boot-after.service";
export const AGENT_UNIT = "unghost-agent.service";
export const KEEP_UNIT = "unghost-keep.service";
export const DROP_IN = "10-unghost.conf";
export const AGENT_DROP_IN = "multi-user.target.d/10-unghost-agent.conf";

const WIDTH = 100;

/**
 * Text wrapped into comment lines. systemd joins a comment that ends in a backslash with the next line, so ours never
 * do.
 */
export function comment(text: string): string {
  const lines: string[] = [];
  let line = "# ";
  for (const word of text.split(" ")) {
    if (line.length + word.length > WIDTH) {
      lines.push(line.trimEnd());
      line = "# ";
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join("\n");
}

/** A command line for ExecStart: each argument stays one word, and nothing is expanded. */
export function execLine(words: readonly string[]): string {
  return words.map(unitWord).join(" ");
}

function unitWord(word: string): string {
  const inert = word.replace(/%/g, "%%").replace(/\$/g, "$$$$");
  if (/^[\w@+=:,./%$-]+$/.test(inert)) return inert;
  return `"${inert.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}

export const WHAT = comment(
  "A ghost is a pod sandbox that died with the machine and still holds its name or its address, so that its pod cannot start " +
    "again. unghost removes the ones that are proven dead. See `unghost history` for what it did.",
);

export const AGENT_PURPOSE = comment(
  "The agent watches this node and heals ghost pod sandboxes as they appear. Its metrics and its status page are on " +
    "127.0.0.1:20258. See `unghost history` for what it did.",
);

export const KEEP_PURPOSE = `\
# CNI plug-ins do not sync the files that they write for each pod, and a power cut leaves those of
# young pods empty: their sandboxes can then not be removed. This syncs each file to disk right
# after it was written. It changes no file.
#
# Nothing requires it: the node comes up whether it succeeds or not.`;

const NO_WAIT = `\
# Nothing requires this unit: the runtime's unit wants it, so that it may fail, hang until its
# timeout or be deleted, and the node comes up all the same. Nothing has to be enabled either.`;

/**
 * For steps that heal: they run the node's containerd and CNI plug-ins as root in the host's mount namespace. Only
 * rights are removed that no runtime and no plug-in needs.
 */
const HEALING = `\
# Taken away one by one, because the cluster chooses the plug-ins: they need CAP_NET_ADMIN and
# CAP_NET_RAW for links and rules, CAP_SYS_ADMIN to enter and unmount network namespaces,
# CAP_SYS_MODULE for what iptables loads.
CapabilityBoundingSet=~CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_BLOCK_SUSPEND CAP_LEASE CAP_LINUX_IMMUTABLE \
CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYS_BOOT CAP_SYS_PACCT CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_WAKE_ALARM
# The runtime's socket; links and rules; the Kubernetes API; plug-ins that announce addresses.
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET AF_INET6 AF_PACKET
SystemCallArchitectures=native
# unghost does not set clocks, reboot or trace. Refused with an error, not with a killed process.
SystemCallFilter=~@clock @cpu-emulation @debug @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes`;

const HEALING_MEMORY = `\
# More than this is a mistake, and must not cost the node its pods.
MemoryMax=1G`;

const HEALING_LEFT_OUT = `\
# Left out on purpose:
# - ProtectSystem, ProtectHome, PrivateTmp, PrivateDevices, PrivateMounts, ProtectKernelTunables,
#   ProtectKernelModules, ProtectKernelLogs, ProtectControlGroups, ProtectProc, ReadWritePaths and
#   their like: each of them gives the process a mount namespace of its own. A network namespace
#   unmounted in there stays mounted on the host, and the ghost with it.
# - PrivateNetwork, RestrictNamespaces: plug-ins work on the host's links and enter the pods'
#   namespaces.
# - ProtectHostname: a name that arrives late (DHCP) would not be seen, and it is the node's name.
# - MemoryDenyWriteExecute: the executable compiles its code as it runs.
# - UMask: directories that containerd makes must keep the modes that pods rely on.
# - CPUQuota, IOWeight: pods wait for this step; it should be over soon.`;

/** Heals before the runtime starts, in a separate unit. */
export function beforeUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  const waiting = services.flatMap(({ service, distribution }) => [service, ...distribution.kubelets]);
  const data = services.flatMap(({ distribution }) => distribution.dataDirs);
  const snaps = services.some(({ distribution }) => distribution.name === "microk8s") ? " snapd.mounts.target" : "";
  const text = `\
${WHAT}
#
# This step runs before the container runtime, at every start of it; it does nothing unless the
# machine was rebooted and no pod is alive. It borrows the runtime's own program on a private
# socket, because the runtime itself is not up yet.
#
${NO_WAIT}

[Unit]
Description=Heal ghost pod sandboxes before the container runtime starts
${condition(settings)}
RequiresMountsFor=${["/var/lib/cni", ...data, settings.stateDir].join(" ")}
# No later than the runtime itself: plug-ins find the links and rules they would find then.
After=local-fs.target network.target${snaps}
Before=${[...new Set(waiting.map(unitName))].join(" ")}

[Service]
Type=oneshot
# So that the next start of the runtime runs it again.
RemainAfterExit=no
ExecStart=${execLine(hookCommand("before", settings))}
# The step has its own deadline; systemd kills it if it runs longer. Never 0 or infinity: the
# runtime waits for it.
TimeoutStartSec=${settings.deadlineSeconds + GRACE_SECONDS}s
# Whatever it started ends with it: a borrowed runtime left behind would hold the lock on the real
# one's records.
KillMode=control-group
TimeoutStopSec=10s
SyslogIdentifier=unghost
${HEALING}
${HEALING_MEMORY}
${HEALING_LEFT_OUT}
# - NoNewPrivileges: under SELinux it keeps containerd, which this step starts, from entering its
#   own domain.
`;
  return { name: BEFORE_UNIT, text };
}

/** Heals what needs a running runtime or CNI agent. */
export function afterUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  const text = `\
${WHAT}
#
# This step waits until the container runtime answers, then heals what could not be healed before,
# until nothing is left or its time is up.
#
${NO_WAIT}

[Unit]
Description=Heal ghost pod sandboxes once the container runtime is up
${condition(settings)}
${afterOrdering(services)}

[Service]
# Started is enough: as a oneshot the boot would count as unfinished for as long as it waits for the
# runtime.
Type=simple
ExecStart=${execLine(hookCommand("after", settings))}
Restart=no
# The step has its own deadline; systemd kills it if it runs longer.
RuntimeMaxSec=${AFTER_SECONDS + GRACE_SECONDS}s
TimeoutStopSec=10s
SyslogIdentifier=unghost
NoNewPrivileges=yes
${HEALING}
${HEALING_MEMORY}
# Pods are up by now. Should memory be short, this goes first.
OOMScoreAdjust=500
${HEALING_LEFT_OUT}
`;
  return { name: AFTER_UNIT, text };
}

/** An embedded runtime's unit is ready only when the API server is, and that may be the pod that a ghost blocks. */
function afterOrdering(services: readonly RuntimeService[]): string {
  const names = services.map(({ service }) => unitName(service));
  if (services.some(({ distribution }) => distribution.before === "in-unit")) {
    const why = comment(
      `Not after ${names.join(" or ")}: that unit counts as started only once the cluster answers, and the ghost may be what keeps ` +
        "it from answering. The step waits for the runtime's socket instead.",
    );
    return `${why}\nAfter=local-fs.target`;
  }
  const own = services.some(({ distribution }) => distribution.before === "own-unit") ? [BEFORE_UNIT] : [];
  return `After=${[...own, ...names].join(" ")}`;
}

/**
 * The agent is wanted by the machine's target and not by the runtime's unit, whose every restart would start an agent
 * that was stopped on purpose.
 */
export function agentDropIn(): Unit {
  const text = `\
${comment("Starts unghost-agent.service with the machine. An agent that is stopped stays stopped until the next boot.")}
#
${comment("To switch it off, run `unghost install` without --agent, or empty this file and run `systemctl daemon-reload`.")}

[Unit]
# Wants, never Requires: the machine boots whether it starts or not.
Wants=${AGENT_UNIT}
`;
  return { name: AGENT_DROP_IN, text };
}

export function agentUnit(settings: HookSettings): Unit {
  const text = `\
${AGENT_PURPOSE}
#
# ${AGENT_DROP_IN} wants it, so that nothing has to be enabled. It does not end with the
# runtime: it reports when the runtime is down.

[Unit]
Description=Heal ghost pod sandboxes as they appear
ConditionPathExists=${settings.program}
RequiresMountsFor=/var/lib/cni ${settings.stateDir}
After=local-fs.target network.target
# It comes back however often it ends.
StartLimitIntervalSec=0

[Service]
Type=simple
# Any setting, such as UNGHOST_CONFIG=/etc/unghost/agent.yaml or UNGHOST_LISTEN=0.0.0.0:20258. It
# may be missing.
EnvironmentFile=-/etc/default/unghost
ExecStart=${execLine(agentCommand(settings))}
Restart=always
RestartSec=5s
# Another agent runs on this node, or the configuration is invalid: the log has the reason.
RestartPreventExitStatus=3 64
# The agent ends its own children once they have finished their step.
KillMode=mixed
TimeoutStopSec=30s
SyslogIdentifier=unghost
NoNewPrivileges=yes
${HEALING}
# It takes about 60 MB. More than this is a mistake.
MemoryMax=256M
${HEALING_LEFT_OUT}
`;
  return { name: AGENT_UNIT, text };
}

/** It reads, and calls fsync: all other rights are removed. */
export function keepUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  const text = `\
${KEEP_PURPOSE}

[Unit]
Description=Sync the files of CNI plug-ins to disk as they are written
${condition(settings)}
RequiresMountsFor=/var/lib/cni
After=local-fs.target
# So that it watches before the first pod is made.
Before=${services.map(({ service }) => unitName(service)).join(" ")}

[Service]
Type=simple
ExecStart=${execLine(keepCommand(settings))}
Restart=always
RestartSec=5s
# It ends at once; only a disk that does not answer could hold it.
TimeoutStopSec=10s
SyslogIdentifier=unghost
# fsync needs no permission to write.
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
# The runtime's socket is a file; nothing else is asked.
PrivateNetwork=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
NoNewPrivileges=yes
# To open files of plug-ins that run as other users.
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
MemoryMax=256M
# Left out on purpose:
# - MemoryDenyWriteExecute: the engine maps such memory at its start.
`;
  return { name: KEEP_UNIT, text };
}

/** Additions to the runtime's own unit. They survive upgrades, which replace the unit but not its drop-ins. */
export function dropIn(found: RuntimeService, settings: HookSettings): Unit {
  const { before } = found.distribution;
  const wanted = [...(before === "own-unit" ? [BEFORE_UNIT] : []), AFTER_UNIT];
  const keep = settings.keep === true ? [KEEP_UNIT] : [];
  const purpose = comment(
    "After a power cut, pod sandboxes that died with the machine hold their names and addresses, and their pods cannot start. " +
      `unghost heals them when ${unitName(found.service)} starts. See \`unghost history\` for what it did.`,
  );
  const text = `\
${[purpose, ...(before === "after-only" ? [comment(CRIO)] : []), SWITCH_OFF].join("\n#\n")}

[Unit]
# Wants, never Requires: whether they succeed or not, this unit starts.
Wants=${[...wanted, ...keep].join(" ")}
${before === "in-unit" ? `\n${inUnitStep(settings)}` : ""}`;
  return { name: `${unitName(found.service)}.d/${DROP_IN}`, text };
}

/** How an operator does it without uninstalling; on NixOS there is no such file. */
export const SWITCH_OFF = comment(
  "To switch it off, run `unghost uninstall`, or empty this file and run `systemctl daemon-reload`.",
);

export const CRIO =
  "CRI-O detects a reboot and cleans up before it listens (crio-wipe, and its own restore at start), so nothing " +
  "runs before it. Once it is up, only what is left is scanned.";

/** With env: systemd before 239 needs an absolute path, and timeout is elsewhere on NixOS. */
function inUnitStep(settings: HookSettings): string {
  return `\
[Service]
# The runtime is a child of this service, so this is the last moment before it. The leading minus: a
# failure changes nothing. This unit has no start timeout (TimeoutStartSec=0), so the step has its
# own deadline, and timeout kills it if it runs longer. It runs at every restart of the service too,
# while pods live on (KillMode=process): it does nothing unless the machine was rebooted and no pod
# is alive.
ExecStartPre=-${execLine(["/usr/bin/env", ...embeddedHookCommand(settings)])}
# Left out on purpose:
# - ExecStartPost: the unit would count as starting until it ends, and it would run only once the
#   cluster answers, which a ghost may prevent. unghost-boot-after.service waits for the runtime's
#   socket instead.
# - Any hardening: it would apply to the service, not to our step.
`;
}

function condition({ program }: HookSettings): string {
  return `\
# Should somebody delete the executable, this is skipped without a complaint.
ConditionPathExists=${program}`;
}

export function unitName(service: string): string {
  return `${service}.service`;
}
