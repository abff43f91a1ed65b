import { buildCommand } from "@stricli/core";
import { SCRIPTS, SHELLS, type Shell } from "../completion/scripts.ts";
import { ExitCode } from "../exit-codes.ts";
import type { Context } from "./index.ts";

type NoFlags = Readonly<Record<string, never>>;

export const completionCommand = buildCommand<NoFlags, [Shell], Context>({
  docs: { brief: "Print a completion script for bash, zsh or fish" },
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [{ parse: shellNamed, brief: SHELLS.join(", "), placeholder: "SHELL" }],
    },
  },
  func: function (_flags, shell) {
    this.io.stdout(SCRIPTS[shell]);
    this.finish(ExitCode.ok);
  },
});

function shellNamed(text: string): Shell {
  const shell = SHELLS.find((one) => one === text);
  if (shell === undefined) throw new Error(`expected one of ${SHELLS.join(", ")}`);
  return shell;
}
