import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../../src/cli/app.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, makeHealFixture, WHY } from "../heal/heal-fixture.ts";

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
  await quarantineFile(fixture, { ...WHY, ...(await fixture.put("cbr0-abc-eth0", "{")) });
});
afterEach(() => fixture.remove());

async function unghost(args: readonly string[]) {
  let stderr = "";
  const io = {
    stdout: () => undefined,
    stderr: (text: string) => void (stderr += text),
    env: {},
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 100,
    stdin: async function* () {},
  };
  return { code: await runCli(args, io), stderr };
}

const AN_ENTRY =
  /^unghost: there is no entry "nope" in (?:the journal|quarantine); unghost \w+(?: \w+)? lists the entries\n$/;
const AN_ACTION = /^unghost: "nope" is not an action of unghost \w+: use \w+(?:, \w+)* or \w+\n$/;
const A_CLASS = /^unghost: unknown failure class "nope"; unghost explain --list names them all\n$/;

test.each<readonly [string, RegExp]>([
  ["history nope", AN_ENTRY],
  ["undo nope", AN_ENTRY],
  ["undo nope --dry-run", AN_ENTRY],
  ["quarantine show nope", AN_ENTRY],
  ["quarantine logs nope", AN_ENTRY],
  ["quarantine prune nope", AN_ENTRY],
  ["quarantine nope", AN_ACTION],
  ["history --class nope", A_CLASS],
])("the same mistake has the same words and exit code: unghost %s", async (line, words) => {
  const { code, stderr } = await unghost([
    ...line.split(" "),
    "--state-dir",
    fixture.stateDir.root,
    "--host-root",
    "/",
  ]);

  expect([code, stderr]).toEqual([64, expect.stringMatching(words)]);
});

test.each([
  ["cni nope", AN_ACTION],
  ["fleet nope", AN_ACTION],
  ["scan --only nope", A_CLASS],
  ["heal --only nope", A_CLASS],
  ["heal --allow nope", A_CLASS],
])("the same elsewhere: unghost %s", async (line, words) => {
  const { code, stderr } = await unghost(line.split(" "));

  expect([code, stderr]).toEqual([64, expect.stringMatching(words)]);
});
