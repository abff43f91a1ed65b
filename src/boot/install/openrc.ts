import { type HookSettings, limitedHookCommand, type RuntimeService } from "./hook.ts";
import { comment } from "./units.ts";

export const BEFORE_SCRIPT = "unghost-boot";
export const AFTER_SCRIPT = "unghost-boot-after";

const WHAT =
  "A ghost is a pod sandbox that died with the machine and still holds its name or its address, so that its pod cannot start " +
  "again. unghost removes the ones that are proven dead. See `unghost history` for what it did.";

const OWN_SCRIPT =
  "Its own script, because upgrades write the runtime's init script again. Nothing needs it, and it always reports success: " +
  "the node comes up whether it succeeds or not.";

/** Completes before the runtime is started. */
export function beforeScript(services: readonly RuntimeService[], settings: HookSettings): string {
  return `#!/sbin/openrc-run
${comment(WHAT)}
#
${comment(
  "This step runs before the container runtime. It does nothing unless the machine was rebooted and no pod is alive. It borrows the " +
    "runtime's own program on a private socket, because the runtime itself is not up yet.",
)}
#
${comment(OWN_SCRIPT)}

description="Heal ghost pod sandboxes before the container runtime starts"

depend() {
	need localmount
	want cgroups
	after modules net firewall
	before ${names(services)}
}

start() {
	[ -x ${shellWord(settings.program)} ] || return 0
	ebegin "Healing ghost pod sandboxes"
${indented(comment("The step has its own deadline; timeout kills it if it runs longer, because services are started one by one here."))}
	${shellWords(limitedHookCommand("before", settings))} 2>&1 | logger -t unghost
	eend 0
}
`;
}

/** Scans after the runtime is started, in the background. */
export function afterScript(services: readonly RuntimeService[], settings: HookSettings): string {
  return `#!/sbin/openrc-run
${comment(WHAT)}
#
${comment(
  "This step waits in the background until the container runtime answers, then heals what could not be healed before.",
)}
#
${comment(OWN_SCRIPT)}

description="Heal ghost pod sandboxes once the container runtime is up"

depend() {
	need localmount
	after ${names(services)}
}

start() {
	[ -x ${shellWord(settings.program)} ] || return 0
	ebegin "Healing ghost pod sandboxes in the background"
	(${shellWords(limitedHookCommand("after", settings))} </dev/null 2>&1 | logger -t unghost) &
	eend 0
}
`;
}

function names(services: readonly RuntimeService[]): string {
  return services.flatMap(({ service, distribution }) => [service, ...distribution.kubelets]).join(" ");
}

function indented(text: string): string {
  return text.replace(/^/gm, "\t");
}

export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
