import { buildCommand } from "@stricli/core";
import { formatDocument } from "../../report/format.ts";
import { ExitCode } from "../exit-codes.ts";
import { nodeFlags } from "../node-settings.ts";
import { outputFormat } from "../setting-values.ts";
import { COMMIT, VERSION } from "../version.ts";
import type { Context } from "./index.ts";

export const versionCommand = buildCommand<{ readonly output?: string }, [], Context>({
  docs: { brief: "Show the version" },
  parameters: { flags: { output: nodeFlags.output }, aliases: { o: "output" } },
  func: async function ({ output }) {
    const format = outputFormat(output === undefined ? undefined : { value: output, from: "--output" });
    const engine = process.versions["bun"] === undefined ? `node ${process.version}` : `bun ${process.versions["bun"]}`;
    const platform = `linux/${process.arch === "x64" ? "amd64" : process.arch}`;
    this.io.stdout(
      format === "table"
        ? `unghost ${VERSION} (commit ${COMMIT}, ${engine}, ${platform})\n`
        : await formatDocument({ version: VERSION, commit: COMMIT, engine, platform }, format),
    );
    this.finish(ExitCode.ok);
  },
});
