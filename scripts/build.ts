/** Builds dist/unghost: one file that needs no Node on the machine it runs on. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** Names an attacker's or a careless environment could use to turn a root tool into a general JavaScript engine. */
const ENGINE_SWITCHES = [
  "BUN_BE_BUN",
  "BUN_OPTIONS",
  // A debugger's port, which takes any JavaScript.
  "BUN_INSPECT",
  // Prints every request with its headers, tokens included.
  "BUN_CONFIG_VERBOSE_FETCH",
];

const target = process.argv[2] ?? `bun-linux-${process.arch === "arm64" ? "arm64" : "x64-baseline"}`;
const out = process.argv[3] ?? "dist/unghost";

mkdirSync("dist", { recursive: true });
const fresh = `${out}.new`;
execFileSync(
  "node_modules/.bin/bun",
  [
    "build",
    "src/main.ts",
    "--compile",
    "--bytecode",
    "--minify",
    // A chunk a command: what a scan never runs need not be instantiated for it.
    "--splitting",
    "--format=esm",
    `--target=${target}`,
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    `--outfile=${fresh}`,
  ],
  { stdio: ["ignore", "ignore", "inherit"] },
);
const binary = readFileSync(fresh);
for (const name of ENGINE_SWITCHES) disarm(binary, name);
writeFileSync(fresh, binary);
chmodSync(fresh, 0o755);
renameSync(fresh, out);

/** The engine looks its switches up by name. An entry of an environment ends at its first NUL, so none has this name. */
function disarm(engine: Buffer, name: string): void {
  const disarmed = Buffer.alloc(name.length);
  for (let at = engine.indexOf(name); at >= 0; at = engine.indexOf(name, at)) disarmed.copy(engine, at);
}
