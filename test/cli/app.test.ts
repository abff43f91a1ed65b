import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCli } from "../../src/cli/app.ts";
import { commandNamed } from "../../src/cli/commands/index.ts";
import { type Io, wantsColour } from "../../src/cli/io.ts";
import { nodeFlags } from "../../src/cli/settings/table.ts";
import { quarantineFile } from "../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, makeHealFixture, STOP, valueOf, WHY } from "../heal/heal-fixture.ts";

async function cli(args: readonly string[], env: Readonly<Record<string, string>> = {}, columns = 100) {
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
    columns,
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
])("%j exits %i", async (args, code) => {
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
])("terminal: %s, with %j, colours: %s", (stdoutIsTerminal, env: Record<string, string>, expected) => {
  expect(wantsColour({ stdoutIsTerminal, env })).toBe(expected);
});

const ALL = [
  "scan",
  "heal",
  "explain",
  "boot",
  "agent",
  "keep",
  "history",
  "undo",
  "quarantine",
  "doctor",
  "config",
  "install",
].concat(["uninstall", "cni", "completion", "version", "help"]);

test.each([
  ["agent", "output"],
  ["keep", "min-age"],
  ["doctor", "concurrency"],
])("%s accepts all flags of a scan, and does not list --%s, which has no effect", async (name, ineffective) => {
  const flags = (await commandNamed(name))?.parameters.flags ?? {};

  expect(Object.keys(flags)).toEqual(expect.arrayContaining(Object.keys(nodeFlags)));
  expect((await cli(["help", name])).stdout).not.toContain(`--${ineffective}`);
});

test.each([[60], [80], [200]])("help of every command fits %i columns and breaks no word", async (columns) => {
  const overview = await cli([], {}, columns);
  for (const name of ALL) {
    const { code, stdout } = await cli(["help", name], {}, columns);

    expect(code).toBe(0);
    expect(overview.stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    expect(stdout).toMatch(new RegExp(`^Usage: unghost ${name}`, "m"));
    expect(stdout.match(/^ {2}.*unghost|^ {2}source/gm)?.length, stdout).toBeGreaterThanOrEqual(3);
    expect(stdout.replace(/\s+/g, " ")).toContain("64 wrong usage");
    for (const line of stdout.split("\n")) {
      // A command line is not wrapped, so that it can be copied.
      if (!/^ {2}(?:unghost|source|journalctl) /.test(line)) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
    expect((await cli([name, "--help"], {}, columns)).stdout).toBe(stdout);
  }
});

test("help shows placeholders, defaults and the flags of the command before the common ones", async () => {
  const { stdout } = await cli(["help", "scan"]);

  expect(stdout).toMatch(/-o, --output FORMAT +table, wide, name, json or yaml/);
  expect(stdout).toMatch(/--timeout DURATION +Timeout per data source \(default 4s\)/);
  expect(stdout.indexOf("--watch")).toBeLessThan(stdout.indexOf("Common flags:"));
  expect(stdout.indexOf("Common flags:")).toBeLessThan(stdout.indexOf("--host-root"));
});

test.each([
  [["scna"], /did you mean scan\?/],
  [["hael"], /^((?!heal).)*$/s],
  [["heall"], /^((?!mean heal).)*$/s],
  [["uninstal"], /^((?!mean uninstall).)*$/s],
  [["help", "nope"], /there is no command "nope"/],
  [["scan", "--only", "dead-after-crahs"], /did you mean dead-after-crash\?/],
])("%j exits 64 and suggests nothing that changes a node", async (args, sentence) => {
  const { code, stderr } = await cli(args);

  expect([code, stderr]).toEqual([64, expect.stringMatching(sentence)]);
});

test.each([
  [["scann"], 'unghost: there is no command "scann"; did you mean scan? unghost help lists the commands.\n'],
  [["help", "scann"], 'unghost: there is no command "scann"; did you mean scan? unghost help lists the commands.\n'],
  [["xyzzy"], 'unghost: there is no command "xyzzy". unghost help lists the commands.\n'],
  [["scan", "--outptu", "json"], "unghost: unknown flag --outptu, did you mean --output?\n"],
  [["scan", "-x"], "unghost: unknown flag -x\n"],
  [["scan", "--miin-age", "3s"], "unghost: unknown flag --miin-age, did you mean --min-age?\n"],
  [["heal", "--all_dead"], "unghost: unknown flag --all_dead, did you mean --all-dead?\n"],
  [["scan", "--timeout"], "unghost: --timeout has no value: give one, or leave the flag out\n"],
  [["scan", "--min-age", "--watch"], "unghost: --min-age has no value: give one, or leave the flag out\n"],
  [["scan", "--no-kube=maybe"], 'unghost: --no-kube: expected true or false, got "maybe"\n'],
  [["doctor", "here"], 'unghost: unexpected argument "here"\n'],
  [["history", "--limit", "0"], 'unghost: --limit: "0" is not a whole number from 1 on\n'],
])("%j gets a one-sentence error", async (args, sentence) => {
  expect((await cli(args)).stderr).toBe(sentence);
});

test("a variable unlike any setting gets no suggestion", async () => {
  const { stderr } = await cli(["version"], { UNGHOST_FOO: "1", UNGHOST_MINAGE: "5s" });

  expect(stderr.split("\n")).toEqual([
    "unghost: warning: UNGHOST_FOO is not a setting",
    "unghost: warning: UNGHOST_MINAGE is not a setting; did you mean UNGHOST_MIN_AGE?",
    "",
  ]);
});

test("an unused variable is reported, with the one that was probably meant", async () => {
  const { stderr } = await cli(["version"], {
    UNGHOST_TIMOUT: "1s",
    UNGHOST_OUTPUT: "json",
    UNGHOST_LISTEN: "x",
    UNGHOST_LAB_CACHE: "x",
  });

  expect(stderr).toBe("unghost: warning: UNGHOST_TIMOUT is not a setting; did you mean UNGHOST_TIMEOUT?\n");
});

test.each([
  [["version", "-ojson"], /^\{\n {2}"version": "/],
  [["version", "-o=yaml"], /^version: /],
  [["-v", "config", "--check"], /config.yaml/],
  [["agent", "--listen=", "--tls-cert=/x"], /^unghost: agent: tlsCert and tlsKey go together/],
  [["-V"], /^\d+\.\d+\.\d+\n$/],
  [["scan", "-V"], /^\d+\.\d+\.\d+\n$/],
])("%j is accepted", async (args, output) => {
  const { stdout, stderr } = await cli(args);

  expect(stdout + stderr).toMatch(output);
});

test.each([
  [["scan", "--node="], "--node="],
  [["heal", "--yes=", "--dry-run"], "--yes="],
])("%j lacks a value, and is neither an argument nor consent", async (args, flag) => {
  const { code, stderr } = await cli(args);

  expect([code, stderr]).toEqual([64, `unghost: ${flag} has no value: give one, or leave the flag out\n`]);
});

test("an argument after -- is not a flag", async () => {
  expect((await cli(["explain", "--", "--node="])).code).not.toBe(64);
});

test.each([["bash"], ["zsh"], ["fish"]])("there is a completion script for %s", async (shell) => {
  expect((await cli(["completion", shell])).stdout).toContain("unghost __complete");
});

test.each([
  [[""], "scan"],
  [["exp"], "explain"],
  [["scan", "--only", "dead-af"], "dead-after-crash"],
  [["explain", "dead-af"], "dead-after-crash"],
  [["scan", "--no-h"], "--no-headers"],
  [["scan", "-o", "w"], "wide"],
  [["completion", ""], "fish"],
])("completes %j", async (words, candidate) => {
  expect((await cli(["__complete", ...words])).stdout.split("\n")).toContain(candidate);
});

describe("completion on a node", () => {
  let fixture: HealFixture;
  beforeEach(async () => {
    fixture = await makeHealFixture();
  });
  afterEach(() => fixture.remove());

  async function complete(...words: readonly string[]): Promise<readonly string[]> {
    const isOfJournal = ["history", "undo", "quarantine"].includes(words[0] ?? "");
    const env: Record<string, string> = isOfJournal
      ? { UNGHOST_STATE_DIR: fixture.stateDir.root }
      : { UNGHOST_HOST_ROOT: fixture.caches };
    return (await cli(["__complete", ...words], env)).stdout.split("\n").slice(0, -1);
  }

  test("offers pods and namespaces by their Kubernetes names, and no directory of another name", async () => {
    const logs = join(fixture.caches, "var/log/pods");
    for (const name of ["shop_web-10_uid", "shop_web-2_uid", "db_pg-0_uid", "x_$(reboot)_uid", "other"])
      mkdirSync(join(logs, name), { recursive: true });

    expect(await complete("scan", "")).toEqual(["db/pg-0", "shop/web-2", "shop/web-10"]);
    expect(await complete("heal", "shop/web-1")).toEqual(["shop/web-10"]);
    expect(await complete("scan", "-n", "")).toEqual(["db", "shop"]);
  });

  test("offers every journal id to history, and to undo only those that can be undone", async () => {
    const request = await fixture.put("cbr0-abc-eth0", "{");
    const quarantined = await quarantineFile(fixture, { ...WHY, ...request });
    const started = valueOf(await fixture.journal.begin({ ...WHY, subject: { type: "sandbox" }, action: STOP }));

    expect(await complete("history", "")).toHaveLength(2);
    expect(await complete("history", "")).toContain(started);
    expect(await complete("undo", "")).toEqual(["id" in quarantined && quarantined.id]);
    expect(await complete("quarantine", "prune", "")).toEqual(["id" in quarantined && quarantined.id]);
  });

  test("offers distributions to install", async () => {
    expect(await complete("install", "--distribution", "k3")).toEqual(["k3s", "k3s-server", "k3s-agent"]);
  });
});
