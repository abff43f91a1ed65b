import { ExitCode, print } from "../io.ts";
import { parseGiven } from "../settings/read.ts";
import { NODE, nodeFlags } from "../settings/table.ts";
import { COMMIT, VERSION } from "../version.ts";
import { defineCommand } from "./index.ts";

export const versionCommand = defineCommand({
  flags: { output: nodeFlags.output },
  aliases: { o: "output" },
  run: async ({ output }, io) => {
    const format = parseGiven(NODE.output, { value: output ?? NODE.output.byDefault, from: "--output" });
    const engine = process.versions["bun"] === undefined ? `node ${process.version}` : `bun ${process.versions["bun"]}`;
    const system = process.platform === "win32" ? "windows" : process.platform;
    const platform = `${system}/${process.arch === "x64" ? "amd64" : process.arch}`;
    const line = `unghost ${VERSION} (commit ${COMMIT}, ${engine}, ${platform})\n`;
    await print({ output: format }, { version: VERSION, commit: COMMIT, engine, platform }, () => line, io);
    return ExitCode.ok;
  },
});
