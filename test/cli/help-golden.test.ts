import { expect, test } from "vitest";
import { runCli } from "../../src/cli/app.ts";
import { COMMAND_NAMES } from "../../src/cli/commands/index.ts";
import { COMMAND_NOTES } from "../../src/cli/commands/notes.ts";

/** `vitest -u` records them again; review each one like a new user. */
const WIDTHS = [60, 80, 200];

async function helpOf(args: readonly string[], columns: number): Promise<string> {
  let stdout = "";
  await runCli(args, {
    stdout: (text) => void (stdout += text),
    stderr: () => undefined,
    env: {},
    stdoutIsTerminal: true,
    stdinIsTerminal: true,
    columns,
    screenColumns: columns,
    stdin: async function* () {},
  });
  return stdout;
}

test.each(WIDTHS)("the overview at %i columns", async (columns) => {
  await expect(await helpOf(["--help"], columns)).toMatchFileSnapshot(`golden/overview.${columns}.txt`);
});

test.each(COMMAND_NAMES.flatMap((name) => WIDTHS.map((columns) => [name, columns] as const)))(
  "%s --help at %i columns",
  async (name, columns) => {
    const help = await helpOf([name, "--help"], columns);

    await expect(help).toMatchFileSnapshot(`golden/${name}.${columns}.txt`);
    const tooLong = help.split("\n").filter((line) => line.length > columns);
    // Only a command to be copied is not wrapped.
    expect(tooLong.filter((line) => !/^ {2}\S/.test(line))).toEqual([]);
  },
);

test("every command has examples and exit codes", () => {
  expect([...COMMAND_NOTES.keys()].toSorted()).toEqual(COMMAND_NAMES.toSorted());
});
