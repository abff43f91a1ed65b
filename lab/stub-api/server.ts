/**
 * The API server of a lab node: `node server.ts STATE-DIR PORT READY-FILE`. STATE-DIR/objects contains the objects,
 * STATE-DIR/mood the behaviour, STATE-DIR/token the accepted token, STATE-DIR/tls.crt and tls.key the certificate, and
 * STATE-DIR/requests the received requests.
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
// For watches; other requests read the files directly.
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
