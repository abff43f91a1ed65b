import { DEFAULT_STATE_DIR, type HookSettings, type RuntimeService } from "./hook.ts";
import { shellWords } from "./openrc.ts";
import {
  commandLine,
  comment,
  condition,
  HEALING,
  HEALING_LEFT_OUT,
  NO_KERNEL,
  NO_SYSTEM,
  on,
  type Setting,
  type Unit,
  unitName,
} from "./units.ts";

export const AGENT_UNIT = "unghost-agent.service";
export const AGENT_SCRIPT = "unghost-agent";

/** Exit codes after which a restart is useless: another agent runs on this node, or the configuration is invalid. */
const FINAL_CODES = "3 64";
const ENVIRONMENT_FILE = "/etc/default/unghost";

const AGENT_PURPOSE =
  "The agent watches this node and heals ghost pod sandboxes as they appear. Its metrics and its status page are on " +
  "127.0.0.1:20258. See `unghost history` for what it did.";

function agentCommand({ program, stateDir }: HookSettings): readonly string[] {
  return [program, "agent", ...(stateDir === DEFAULT_STATE_DIR ? [] : ["--state-dir", stateDir])];
}

export function agentUnit(settings: HookSettings): Unit {
  return {
    name: AGENT_UNIT,
    intro: [
      AGENT_PURPOSE,
      "The runtime's unit wants it, so that nothing has to be enabled. It does not end with the runtime: it reports when the " +
        "runtime is down.",
    ],
    sections: [
      {
        name: "Unit",
        settings: [
          { key: "Description", value: "Heal ghost pod sandboxes as they appear" },
          { key: "ConditionPathExists", value: settings.program },
          { key: "RequiresMountsFor", value: ["/var/lib/cni", settings.stateDir].join(" ") },
          { key: "After", value: "local-fs.target network.target" },
          { key: "StartLimitIntervalSec", value: "0", why: "It comes back however often it ends." },
        ],
      },
      {
        name: "Service",
        settings: [
          { key: "Type", value: "simple" },
          {
            key: "EnvironmentFile",
            value: `-${ENVIRONMENT_FILE}`,
            why: "Any setting, such as UNGHOST_CONFIG=/etc/unghost/agent.yaml or UNGHOST_LISTEN=0.0.0.0:20258. It may be missing.",
          },
          { key: "ExecStart", value: commandLine(agentCommand(settings)) },
          { key: "Restart", value: "always" },
          { key: "RestartSec", value: "5s" },
          {
            key: "RestartPreventExitStatus",
            value: FINAL_CODES,
            why: "Another agent runs on this node, or the configuration is invalid: the log has the reason.",
          },
          {
            key: "KillMode",
            value: "mixed",
            why: "The agent ends its own children once they have finished their step.",
          },
          { key: "TimeoutStopSec", value: "30s" },
          { key: "SyslogIdentifier", value: "unghost" },
          { key: "NoNewPrivileges", value: "yes" },
          ...HEALING.filter(({ key }) => key !== "MemoryMax"),
          { key: "MemoryMax", value: "256M", why: "It takes about 60 MB. More than this is a mistake." },
        ],
        leftOut: HEALING_LEFT_OUT,
      },
    ],
  };
}

/** supervise-daemon restarts it however it ends; OpenRC reads /etc/conf.d/unghost-agent for its environment. */
export function agentScript(services: readonly RuntimeService[], settings: HookSettings): string {
  const [program = "", ...args] = agentCommand(settings);
  return `#!/sbin/openrc-run
${comment(AGENT_PURPOSE)}
#
${comment("Settings: export UNGHOST_CONFIG=/etc/unghost/agent.yaml and the like in /etc/conf.d/unghost-agent.")}

description="Heal ghost pod sandboxes as they appear"
supervisor=supervise-daemon
command=${shellWords([program])}
command_args="${shellWords(args)}"
respawn_delay=5
respawn_max=0
output_logger="logger -t unghost"
error_logger="logger -t unghost"

depend() {
	need localmount
	after net ${services.map(({ service }) => service).join(" ")}
}
`;
}

export const KEEP_UNIT = "unghost-keep.service";
export const KEEP_SCRIPT = "unghost-keep";

const KEEP_PURPOSE =
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
    intro: [KEEP_PURPOSE, NOTHING_NEEDS_IT],
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
${comment(KEEP_PURPOSE)}
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
