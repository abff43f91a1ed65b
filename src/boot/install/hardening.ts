import { on, type Setting } from "./unit-text.ts";

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
