/**
 * The API server of a lab node: `node server.ts STATE-DIR PORT READY-FILE`. Objects are files below
 * STATE-DIR/objects, named by their own address; STATE-DIR/mood says how it behaves; STATE-DIR/requests is what it was asked.
 */
import { appendFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type ApiObject, matches } from "./field-selector.ts";

const [stateDir = "", port = "", readyFile = ""] = process.argv.slice(2);
const objects = join(stateDir, "objects");

const server = createServer((request, response) => {
  handle(request, response).catch((error: unknown) => {
    answer(response, 500, status(500, "InternalError", String(error)));
  });
});
server.listen(Number(port), "127.0.0.1", () => writeFileSync(readyFile, `${process.pid}\n`));

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "GET" } = request;
  const url = new URL(request.url ?? "/", "http://lab");
  const body = await text(request);
  appendFileSync(join(stateDir, "requests"), `${method} ${url.pathname}${decodeURIComponent(url.search)}\n`);
  const mood = readIfThere(join(stateDir, "mood")).trim();
  if (mood === "hang") return;
  if (mood === "401") return answer(response, 401, status(401, "Unauthorized", "Unauthorized"));
  if (mood !== "")
    return answer(response, Number(mood), status(Number(mood), "Trouble", "etcdserver: request timed out"));
  // What is written to a status is answered and not kept.
  const file = join(objects, `${url.pathname.replace(/\/status$/, "")}.json`);
  if (existsSync(file))
    return method === "DELETE" ? remove(file, body, response) : answer(response, 200, objectIn(file));
  const listed = method === "GET" ? list(url) : undefined;
  if (listed === undefined) answer(response, 404, status(404, "NotFound", `${url.pathname} not found`));
  else answer(response, 200, listed);
}

/** As the real one: a uid that does not fit is a conflict, and what has finalizers is only marked. */
function remove(file: string, body: string, response: ServerResponse): void {
  const options: unknown = body === "" ? {} : JSON.parse(body);
  const wanted = uidWanted(options);
  const object = objectIn(file);
  if (wanted !== undefined && wanted !== object.metadata.uid) {
    const message = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${object.metadata.uid}`;
    return answer(response, 409, status(409, "Conflict", message));
  }
  const { finalizers = [] } = object.metadata;
  if (finalizers.length === 0) rmSync(file);
  else {
    const deletionTimestamp = new Date().toISOString();
    writeFileSync(file, JSON.stringify({ ...object, metadata: { ...object.metadata, deletionTimestamp } }));
  }
  answer(response, 200, object);
}

function uidWanted(options: unknown): string | undefined {
  if (typeof options !== "object" || options === null || !("preconditions" in options)) return undefined;
  const { preconditions } = options;
  if (typeof preconditions !== "object" || preconditions === null || !("uid" in preconditions)) return undefined;
  return String(preconditions.uid);
}

/** `/api/v1/pods` is every pod, `/api/v1/namespaces/x/pods` those of one namespace, `/api/v1/nodes` has none. */
function list(url: URL): unknown {
  const [, prefix, namespace, resource] =
    /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)$/.exec(url.pathname) ?? [];
  if (prefix === undefined || resource === undefined) return undefined;
  const patterns =
    namespace === undefined
      ? [`${resource}/*.json`, `namespaces/*/${resource}/*.json`]
      : [`namespaces/${namespace}/${resource}/*.json`];
  const files = patterns.flatMap((pattern) => globSync(join(objects, prefix, pattern))).toSorted();
  const selector = url.searchParams.get("fieldSelector") ?? "";
  const found = files.map(objectIn).filter((object) => matches(object, selector));
  const from = Number(url.searchParams.get("continue") ?? 0);
  const limit = Number(url.searchParams.get("limit") ?? 0) || found.length;
  const rest = found.length - from - limit;
  const more = rest > 0 ? { continue: String(from + limit), remainingItemCount: rest } : {};
  return {
    kind: "List",
    apiVersion: "v1",
    metadata: { resourceVersion: "1", ...more },
    items: found.slice(from, from + limit),
  };
}

function objectIn(file: string): ApiObject {
  return JSON.parse(readFileSync(file, "utf8"));
}

function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

function status(code: number, reason: string, message: string): unknown {
  return { kind: "Status", apiVersion: "v1", status: "Failure", reason, code, message };
}

function answer(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}
