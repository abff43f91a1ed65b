/** Builds dist/unghost for this machine, with the engine that npm has installed. Others: see release.ts. */
import { compileExecutable } from "./executable.ts";

await compileExecutable({
  target: `bun-linux-${process.arch === "arm64" ? "arm64" : "x64"}`,
  engine: "node_modules/bun/bin/bun.exe",
  out: process.argv[2] ?? "dist/unghost",
});
