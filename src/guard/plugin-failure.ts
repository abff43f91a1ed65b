import { parseJson, stringIn } from "../host/text.ts";

/**
 * Why a plugin's DEL failed, judged by its message.
 * - `plugin-missing`: its executable is not there, or cannot be executed.
 * - `daemon-away`: what it asks does not answer: a daemon's socket, the API server, or the plugin itself.
 * - `state-gone`: there is nothing left to release.
 * - `other`: anything else.
 */
export type FailureKind = "plugin-missing" | "daemon-away" | "state-gone" | "other";

export interface PluginFailure {
  readonly kind: FailureKind;
  /** The plugin's own words. */
  readonly words: string;
}

export interface PluginEnd {
  /** `exit 1`, `signal 9` or `timeout`. */
  readonly how: string;
  readonly stdout: string;
  readonly stderr: string;
}

const PLUGIN_MISSING = [
  /failed to find plugin "/i,
  /^executing \/\S+: (?:no such file|permission denied|exec format)/i,
];

/** Asked before STATE_GONE: "no such file or directory" is about a socket here, and not about what was to be released. */
const DAEMON_AWAY = [
  /\bdial (?:unix|tcp|udp)\b/i,
  /connect(?:ion)?:? (?:was )?refused|connection reset|connection is unauthorized|broken pipe/i,
  /\b(?:connect|connecting|connection) (?:to|error|failed|timed out)\b/i,
  /i\/o timeout|handshake timeout|deadline exceeded|timed out|timeout (?:exceeded|waiting)/i,
  /is the agent running|daemon not reachable|unable to connect|no route to host|network is unreachable/i,
  /: EOF\b|unexpected EOF|server (?:is )?(?:currently )?unavailable|service unavailable|too many requests/i,
  /unauthorized|an error on the server|etcdserver|apiserver|rpc error/i,
  /holding the xtables lock|resource temporarily unavailable|try again later/i,
];

const STATE_GONE = [
  /\blink not found\b|cannot find device|no such device|failed to lookup "[^"]*"/i,
  /no such (?:network )?namespace|(?:failed to|unable to|error) open(?:ing)? netns|netns (?:pinned at )?\S* ?:? ?open \S* ?: no such file/i,
  /no such network interface|interface \S+ not found|failed to find interface/i,
  /did not find reserved ip|address (?:is )?already released|already (?:released|deleted|removed)|no (?:ip|lease) (?:found )?for container/i,
  /failed to statfs "[^"]*": no such file or directory|unknown fs magic|stat netns path "[^"]*": stat ?: no such file/i,
];

export function classifyFailure(end: PluginEnd): PluginFailure {
  const words = wordsOf(end);
  return { kind: kindOf(end.how, words), words };
}

function kindOf(how: string, words: string): FailureKind {
  if (how === "timeout" || how.startsWith("signal")) return "daemon-away";
  const has = (pattern: RegExp): boolean => pattern.test(words);
  if (PLUGIN_MISSING.some(has)) return "plugin-missing";
  if (DAEMON_AWAY.some(has)) return "daemon-away";
  return STATE_GONE.some(has) ? "state-gone" : "other";
}

/** CNI's error JSON, or whatever it wrote. */
function wordsOf({ how, stdout, stderr }: PluginEnd): string {
  const error = parseJson(stdout);
  const messages = [stringIn(error, "msg"), stringIn(error, "details")].filter(
    (text) => text !== undefined && text !== "",
  );
  const words = messages.length > 0 ? messages.join("; ") : (stdout.trim() || stderr.trim()).slice(0, 2000);
  return words === "" ? `no message (${how})` : words;
}
