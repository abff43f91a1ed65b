/** Removes what may be a secret from text that leaves the node. Too much is better than too little. */

const REDACTED = "[redacted]";

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/*
 * Anybody on the node writes the lines that are searched here. So every form begins only where a word begins (the
 * lookbehinds) and never reads a word again from its middle: the time grows with the length, not with its square.
 */

/** By their own form, wherever they are. */
const TOKENS: readonly RegExp[] = [
  // JSON Web Tokens: ServiceAccounts, OIDC.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g,
  // k3s and rke2 join tokens; kubeadm's.
  /\bK10[0-9a-f]{64}(?:::[^\s"']+)?/g,
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  /\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AIza|dckr_pat_)[\w-]{10,}/g,
];

const IN_URL = /(?<![\w+.-])([a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi;
/** Queries of URLs are credentials as often as not: signed downloads, tokens of proxies. */
const WITH_QUERY = /(\bhttps?:\/\/[^\s?"']+)(\?[^\s"']+)?/gi;
const SCHEME = /\b(bearer|basic|negotiate|digest)\s+[\w+/.=~-]{8,}/gi;

const SECRET =
  "passw(?:or)?d|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|client[-_]?key|credential|authorization|dockerconfig|cookie";
const IS_SECRET = new RegExp(SECRET, "i");
const WORD_START = "(?<![\\w.-])";
const SECRET_KEY = `(?=[\\w.-]*?(?:${SECRET}))[\\w.-]+`;
/** `password=x`, `--token x`, `"secret": "x"`. */
const ASSIGNED = new RegExp(`${WORD_START}(${SECRET_KEY}["']?\\s*=\\s*)("[^"]*"|'[^']*'|[^\\s,;&"']+)`, "gi");
const QUOTED = new RegExp(
  `("(?:${SECRET_KEY}|auth)\\\\?"\\s*:\\s*)(\\\\?"(?:[^"\\\\]|\\\\[^"])*\\\\?"|[\\w+/.=-]+)`,
  "gi",
);
const OPTION = new RegExp(`${WORD_START}(--?${SECRET_KEY}\\s+)([^\\s-]\\S*)`, "gi");
/** After a colon stands prose as often as a secret: "failed to fetch token: unexpected status". */
const AFTER_COLON = new RegExp(
  `${WORD_START}(${SECRET_KEY}:\\s+)(["']?)((?=\\S*\\d)[\\w+/.=-]{8,}|[\\w+/=]{24,})\\2`,
  "gi",
);

/** Base64 and the like; hexadecimal ids and digests, and paths, are what a report is about. */
const LONG_WORD = /(?<![\w+/.:-])[A-Za-z0-9+/_-]{40,}={0,2}(?![\w+/-])/g;

/** One text of any kind, such as a log line or a message. */
export function redactText(text: string): string {
  let out = text.replace(PRIVATE_KEY, `-----BEGIN PRIVATE KEY----- ${REDACTED}`);
  for (const form of TOKENS) out = out.replace(form, REDACTED);
  return out
    .replace(IN_URL, `$1${REDACTED}@`)
    .replace(WITH_QUERY, (_url, path: string, query?: string) => (query === undefined ? path : `${path}?${REDACTED}`))
    .replace(SCHEME, `$1 ${REDACTED}`)
    .replace(ASSIGNED, `$1${REDACTED}`)
    .replace(QUOTED, `$1"${REDACTED}"`)
    .replace(OPTION, `$1${REDACTED}`)
    .replace(AFTER_COLON, `$1${REDACTED}`)
    .replace(LONG_WORD, (word) => (isMixed(word) ? REDACTED : word));
}

function isMixed(word: string): boolean {
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && /\d/.test(word) && !word.startsWith("/");
}

/** A line of a configuration file: its key, and what follows. */
const KEY_AND_VALUE = /^(\s*(?:-\s*)?["']?([\w./-]+)["']?\s*[:=]\s*)\S/;
/** Keys whose value is never needed to understand a node, besides those with a secret in their name. */
const PRIVATE_CONFIG_KEY = /key-data|certificate-data|^(?:auth|username|user|env|environment)$/i;

/** A configuration file in YAML, TOML or JSON, line by line: what cannot be parsed is redacted, too. */
export function redactConfig(text: string): string {
  const whole = text.replace(PRIVATE_KEY, `-----BEGIN PRIVATE KEY----- ${REDACTED}`);
  return whole
    .split("\n")
    .map((line) => {
      const [, start = "", key = ""] = KEY_AND_VALUE.exec(line) ?? [];
      return redactText(IS_SECRET.test(key) || PRIVATE_CONFIG_KEY.test(key) ? `${start}"${REDACTED}"` : line);
    })
    .join("\n");
}

/** Annotations that a diagnosis asks for; the values of all others may be anything, up to a whole manifest. */
const KNOWN_ANNOTATION = /^(?:unghost\.dev\/|kubernetes\.io\/config\.)/;

/** Every string of a document, in a copy. Keys stay. */
export function redactDeep(value: unknown, key = ""): unknown {
  if (typeof value === "string") return IS_SECRET.test(key) ? REDACTED : redactText(value);
  if (Array.isArray(value)) return value.map((one) => redactDeep(one));
  if (value instanceof Map) return new Map([...value].map(([name, one]) => [name, redactDeep(one)]));
  if (value instanceof Set) return new Set([...value].map((one) => redactDeep(one)));
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const entries = Object.entries(value).map(([name, one]): [string, unknown] => {
    const isUnknown = key === "annotations" && !KNOWN_ANNOTATION.test(name);
    return [name, isUnknown ? REDACTED : redactDeep(one, name)];
  });
  return Object.fromEntries(entries);
}
