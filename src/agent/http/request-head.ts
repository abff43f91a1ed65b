/** What the status server uses of a request: it reads no body. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** The connection ends after the answer. */
  readonly isLast: boolean;
}

export interface MalformedHead {
  readonly status: 400 | 431 | 505;
  readonly reason: string;
}

export interface ReadHead {
  readonly head: RequestHead | MalformedHead;
  /** What was received after the head. */
  readonly rest: Buffer;
}

export const MAX_HEAD_BYTES = 8 * 1024;

const HEAD_END = "\r\n\r\n";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Returns undefined while the head is incomplete. */
export function readHead(received: Buffer): ReadHead | undefined {
  const end = received.subarray(0, MAX_HEAD_BYTES).indexOf(HEAD_END);
  if (end !== -1) {
    const head = parseHead(received.toString("latin1", 0, end));
    return { head, rest: received.subarray(end + HEAD_END.length) };
  }
  if (received.length < MAX_HEAD_BYTES) return undefined;
  return { head: { status: 431, reason: `The headers exceed ${MAX_HEAD_BYTES} bytes.` }, rest: Buffer.alloc(0) };
}

function parseHead(text: string): RequestHead | MalformedHead {
  const [requestLine = "", ...lines] = text.split("\r\n");
  const [method = "", target = "", version = "", ...more] = requestLine.split(" ");
  if (!TOKEN.test(method) || target === "" || more.length > 0 || !/^HTTP\/\d\.\d$/.test(version)) {
    return malformed("The first line is no HTTP request.");
  }
  if (!version.startsWith("HTTP/1.")) return { status: 505, reason: "Only HTTP/1.0 and HTTP/1.1 are supported." };
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!TOKEN.test(name)) return malformed("A header line has no name.");
    const earlier = headers.get(name);
    if (earlier !== undefined && name === "host") return malformed("There is more than one Host header.");
    const value = line.slice(colon + 1).trim();
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  const isOld = version === "HTTP/1.0";
  if (!isOld && !headers.has("host")) return malformed("There is no Host header.");
  const wish = headers.get("connection")?.toLowerCase() ?? "";
  // A body would be taken for the next request.
  const hasBody = headers.has("transfer-encoding") || (headers.get("content-length") ?? "0") !== "0";
  return { method, target, headers, isLast: hasBody || isOld || wish.includes("close") };
}

function malformed(reason: string): MalformedHead {
  return { status: 400, reason };
}
