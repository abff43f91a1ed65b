import { shellWord } from "../../host/text.ts";
import {
  agentCommand,
  type HookSettings,
  type HookStep,
  keepCommand,
  limitedHookCommand,
  type RuntimeService,
} from "./hook.ts";
import { AGENT_PURPOSE, comment, KEEP_PURPOSE, WHAT } from "./units.ts";

/** A script for /etc/init.d. */
export interface Script {
  readonly name: string;
  readonly text: string;
}

export const AFTER_SCRIPT = "unghost-boot-after";

const OWN_SCRIPT = `\
# Its own script, because upgrades write the runtime's init script again. Nothing needs it, and it
# always reports success: the node comes up whether it succeeds or not.`;

/** Completes before the runtime is started. */
export function beforeScript(services: readonly RuntimeService[], settings: HookSettings): Script {
  const text = `#!/sbin/openrc-run
${WHAT}
#
# This step runs before the container runtime. It does nothing unless the machine was rebooted and
# no pod is alive. It borrows the runtime's own program on a private socket, because the runtime
# itself is not up yet.
#
${OWN_SCRIPT}

description="Heal ghost pod sandboxes before the container runtime starts"

depend() {
	need localmount
	want cgroups
	after modules net firewall
	before ${withKubelets(services)}
}

start() {
	[ -x ${shellWord(settings.program)} ] || return 0
	ebegin "Healing ghost pod sandboxes"
	# The step has its own deadline; timeout kills it if it runs longer, because services are started
	# one by one here.
	${hook("before", settings)} 2>&1 | logger -t unghost
	eend 0
}
`;
  return { name: "unghost-boot", text };
}

/** Scans after the runtime is started, in the background. */
export function afterScript(services: readonly RuntimeService[], settings: HookSettings): Script {
  const text = `#!/sbin/openrc-run
${WHAT}
#
# This step waits in the background until the container runtime answers, then heals what could not
# be healed before.
#
${OWN_SCRIPT}

description="Heal ghost pod sandboxes once the container runtime is up"

depend() {
	need localmount
	after ${withKubelets(services)}
}

start() {
	[ -x ${shellWord(settings.program)} ] || return 0
	ebegin "Healing ghost pod sandboxes in the background"
	(${hook("after", settings)} </dev/null 2>&1 | logger -t unghost) &
	eend 0
}
`;
  return { name: AFTER_SCRIPT, text };
}

/** supervise-daemon restarts it however it ends; OpenRC reads /etc/conf.d/unghost-agent for its environment. */
export function agentScript(services: readonly RuntimeService[], settings: HookSettings): Script {
  const settingsFile =
    "Settings: export UNGHOST_CONFIG=/etc/unghost/agent.yaml and the like in /etc/conf.d/unghost-agent.";
  return daemon("unghost-agent", agentCommand(settings), {
    comments: `${AGENT_PURPOSE}\n#\n${comment(settingsFile)}`,
    description: "Heal ghost pod sandboxes as they appear",
    respawn: "respawn_delay=5\nrespawn_max=0\n",
    order: `after net ${runtimes(services)}`,
  });
}

export function keepScript(services: readonly RuntimeService[], settings: HookSettings): Script {
  return daemon("unghost-keep", keepCommand(settings), {
    comments: KEEP_PURPOSE,
    description: "Sync the files of CNI plug-ins to disk as they are written",
    respawn: "",
    order: `before ${runtimes(services)}`,
  });
}

type Daemon = Readonly<Record<"comments" | "description" | "respawn" | "order", string>>;

function daemon(name: string, [program = "", ...args]: readonly string[], words: Daemon): Script {
  const text = `#!/sbin/openrc-run
${words.comments}

description="${words.description}"
supervisor=supervise-daemon
command=${shellWord(program)}
command_args="${shellWords(args)}"
${words.respawn}output_logger="logger -t unghost"
error_logger="logger -t unghost"

depend() {
	need localmount
	${words.order}
}
`;
  return { name, text };
}

function hook(step: HookStep, settings: HookSettings): string {
  return shellWords(limitedHookCommand(step, settings));
}

function runtimes(services: readonly RuntimeService[]): string {
  return services.map(({ service }) => service).join(" ");
}

function withKubelets(services: readonly RuntimeService[]): string {
  return services.flatMap(({ service, distribution }) => [service, ...distribution.kubelets]).join(" ");
}

export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}
