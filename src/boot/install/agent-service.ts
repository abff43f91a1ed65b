import type { RuntimeService } from "./distribution.ts";
import { HEALING, HEALING_LEFT_OUT } from "./hardening.ts";
import { DEFAULT_STATE_DIR, type HookSettings } from "./hook-command.ts";
import { shellWords } from "./openrc.ts";
import { commandLine, comment, type Unit } from "./unit-text.ts";

export const AGENT_UNIT = "unghost-agent.service";
export const AGENT_SCRIPT = "unghost-agent";

/** Exit codes after which a restart is useless: another agent runs on this node, or the configuration is invalid. */
const FINAL_CODES = "3 64";
const ENVIRONMENT_FILE = "/etc/default/unghost";

const WHAT =
  "The agent watches this node and heals ghost pod sandboxes as they appear. Its metrics and its status page are on " +
  "127.0.0.1:20258. See `unghost history` for what it did.";

function agentCommand({ program, stateDir }: HookSettings): readonly string[] {
  return [program, "agent", ...(stateDir === DEFAULT_STATE_DIR ? [] : ["--state-dir", stateDir])];
}

export function agentUnit(settings: HookSettings): Unit {
  return {
    name: AGENT_UNIT,
    intro: [
      WHAT,
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
${comment(WHAT)}
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
