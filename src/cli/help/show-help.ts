import { commandNamed } from "../commands/index.ts";
import { ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { renderCommandHelp, renderOverview } from "./render-help.ts";

/** Help for one command, or what there is. */
export async function showHelp(name: string | undefined, io: Io): Promise<ExitCode> {
  const command = name === undefined ? undefined : await commandNamed(name);
  if (name !== undefined && command === undefined) {
    io.stderr(`unghost: there is no command "${name}". unghost help lists the commands.\n`);
    return ExitCode.usage;
  }
  io.stdout(
    name === undefined || command === undefined
      ? renderOverview(io.columns)
      : renderCommandHelp(name, command, io.columns),
  );
  return ExitCode.ok;
}
