import { expect, test } from "vitest";
import { runCli } from "../../src/cli/app.ts";
import type { Io } from "../../src/cli/io.ts";
import { wantsColour } from "../../src/cli/io.ts";

async function cli(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  let stdout = "";
  let stderr = "";
  const io: Io = {
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
    env,
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 100,
    stdin: async function* () {},
  };
  return { code: await runCli(args, io), stdout, stderr };
}

test.each([
  [[], 0],
  [["--help"], 0],
  [["--version"], 0],
  [["scan", "--help"], 0],
  [["haunt"], 64],
  [["scan", "--haunt"], 64],
  [["scan", "--timeout", "x"], 64],
  [["scan", "--only", "x"], 64],
])("%j ends with %i", async (args, code) => {
  expect((await cli(args)).code).toBe(code);
});

test.each([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: "1" }, false],
  [true, { NO_COLOR: "" }, true],
  [true, { TERM: "dumb" }, false],
  [false, { FORCE_COLOR: "1" }, true],
  [true, { FORCE_COLOR: "0" }, false],
  [true, { FORCE_COLOR: "1", NO_COLOR: "1" }, false],
])("on a terminal: %s, with %j, colours: %s", (stdoutIsTerminal, env: Record<string, string>, expected) => {
  expect(wantsColour({ stdoutIsTerminal, env })).toBe(expected);
});
