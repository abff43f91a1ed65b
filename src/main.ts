import { runCli } from "./cli/app.ts";
import { processIo } from "./cli/process-io.ts";

process.exitCode = await runCli(process.argv.slice(2), processIo());
