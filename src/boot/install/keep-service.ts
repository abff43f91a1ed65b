import type { RuntimeService } from "./distribution.ts";
import { NO_KERNEL, NO_SYSTEM } from "./hardening.ts";
import type { HookSettings } from "./hook-command.ts";
import { shellWords } from "./openrc.ts";
import { commandLine, comment, on, type Setting, type Unit } from "./unit-text.ts";
import { condition, unitName } from "./units.ts";

export const KEEP_UNIT = "unghost-keep.service";
export const KEEP_SCRIPT = "unghost-keep";

const WHAT =
  "CNI plug-ins do not sync the files that they write for each pod, and a power cut leaves those of young pods empty: their sandboxes " +
  "can then not be removed. This syncs each file to disk right after it was written. It changes no file.";

const NOTHING_NEEDS_IT = "Nothing requires it: the node comes up whether it succeeds or not.";

/** It reads, and calls fsync: all other rights are removed. */
const READING: readonly Setting[] = [
  { key: "ProtectSystem", value: "strict", why: "fsync needs no permission to write." },
  ...on("ProtectHome", "PrivateTmp", "PrivateDevices"),
  { key: "PrivateNetwork", value: "yes", why: "The runtime's socket is a file; nothing else is asked." },
  ...NO_KERNEL,
  {
    key: "CapabilityBoundingSet",
    value: "CAP_DAC_READ_SEARCH",
    why: "To open files of plug-ins that run as other users.",
  },
  { key: "RestrictAddressFamilies", value: "AF_UNIX" },
  ...NO_SYSTEM,
  { key: "MemoryMax", value: "256M" },
];

export function keepUnit(services: readonly RuntimeService[], settings: HookSettings): Unit {
  return {
    name: KEEP_UNIT,
    intro: [WHAT, NOTHING_NEEDS_IT],
    sections: [
      {
        name: "Unit",
        settings: [
          { key: "Description", value: "Sync the files of CNI plug-ins to disk as they are written" },
          ...condition(settings),
          { key: "RequiresMountsFor", value: "/var/lib/cni" },
          { key: "After", value: "local-fs.target" },
          {
            key: "Before",
            value: services.map(({ service }) => unitName(service)).join(" "),
            why: "So that it watches before the first pod is made.",
          },
        ],
      },
      {
        name: "Service",
        settings: [
          { key: "Type", value: "simple" },
          { key: "ExecStart", value: commandLine(keepCommand(settings)) },
          { key: "Restart", value: "always" },
          { key: "RestartSec", value: "5s" },
          {
            key: "TimeoutStopSec",
            value: "10s",
            why: "It ends at once; only a disk that does not answer could hold it.",
          },
          { key: "SyslogIdentifier", value: "unghost" },
          ...READING,
        ],
        leftOut: ["MemoryDenyWriteExecute: the engine maps such memory at its start."],
      },
    ],
  };
}

export function keepScript(services: readonly RuntimeService[], settings: HookSettings): string {
  const [program = "", ...args] = keepCommand(settings);
  return `#!/sbin/openrc-run
${comment(WHAT)}
#
${comment(NOTHING_NEEDS_IT)}

description="Sync the files of CNI plug-ins to disk as they are written"
supervisor=supervise-daemon
command=${shellWords([program])}
command_args="${shellWords(args)}"
output_logger="logger -t unghost"
error_logger="logger -t unghost"

depend() {
	need localmount
	before ${services.map(({ service }) => service).join(" ")}
}
`;
}

function keepCommand({ program }: HookSettings): readonly string[] {
  return [program, "keep"];
}
