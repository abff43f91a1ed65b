/**
 * The API server of a lab node: `node server.ts STATE-DIR PORT READY-FILE`. STATE-DIR/objects holds the objects,
 * STATE-DIR/mood sets how it behaves, STATE-DIR/token the accepted token, STATE-DIR/tls.crt and tls.key who it is, and
 * STATE-DIR/requests is what it was asked.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseMood } from "./faults.ts";
import { keepInFiles } from "./object-files.ts";
import { serveStubApi } from "./serve.ts";
import { openStore } from "./store.ts";

const [stateDir = "", port = "", readyFile = ""] = process.argv.slice(2);
const POLL_MS = 500;

function textOf(name: string): string | undefined {
  const file = join(stateDir, name);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

const store = openStore();
mkdirSync(join(stateDir, "objects"), { recursive: true });
const takeInFiles = keepInFiles(store, join(stateDir, "objects"));
// For watches; other requests read the files at that moment.
setInterval(takeInFiles, POLL_MS);
const cert = textOf("tls.crt");
const key = textOf("tls.key");
await serveStubApi({
  store,
  port: Number(port),
  ...(cert === undefined || key === undefined ? {} : { tls: { cert, key } }),
  mood: () => parseMood(textOf("mood") ?? ""),
  token: () => textOf("token")?.trim(),
  onRequest: (line) => {
    appendFileSync(join(stateDir, "requests"), `${line}\n`);
    takeInFiles();
  },
});
writeFileSync(readyFile, `${process.pid}\n`);
