import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };
import { tempDir } from "../support/temp-dir.ts";
import { startAgent } from "./running-agent.ts";
import { reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

function tempFile(name: string, content: string): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  writeFileSync(dir.join(name), content);
  return dir.join(name);
}

describe("a usage error exits 64 with one sentence that names the place", () => {
  const CASES: [string, readonly string[], Record<string, string>, RegExp][] = [
    ["an unknown command", ["haunt"], {}, /haunt/],
    [
      "an unknown flag",
      ["scan", "--miin-age", "3s"],
      {},
      /^unghost: unknown flag --miin-age, did you mean --min-age\?/,
    ],
    ["a word too many", ["doctor", "here"], {}, /here/],
    ["a flag without its value", ["scan", "--timeout"], {}, /--timeout/],
    ["a bad duration", ["scan", "--timeout", "soon"], {}, /^unghost: --timeout: "soon" is not a duration: .*10m/],
    ["no time at all", ["scan", "--timeout", "0s"], {}, /^unghost: --timeout: expected at least 10ms/],
    ["a bad duration in the environment", ["scan"], { UNGHOST_MIN_AGE: "old" }, /^unghost: UNGHOST_MIN_AGE: "old"/],
    ["an unknown class", ["scan", "--only", "poltergeist"], {}, /^unghost: unknown failure class "poltergeist"/],
    ["an unknown class to skip", ["scan", "--skip", "dead"], {}, /did you mean dead-after-crash\?/],
    [
      "an unknown format",
      ["scan", "-o", "xml"],
      {},
      /^unghost: --output: expected one of table, wide, name, json, yaml, got "xml"/,
    ],
    ["a bad number", ["scan", "--concurrency", "many"], {}, /^unghost: --concurrency: expected a whole number/],
    ["a relative path", ["scan", "--host-root", "host"], {}, /^unghost: --host-root: expected an absolute path/],
    [
      "an endpoint that is none",
      ["scan", "--runtime-endpoint", "tcp://1.2.3.4"],
      {},
      /^unghost: --runtime-endpoint: "tcp/,
    ],
    [
      "a missing configuration file",
      ["scan", "--config", "/nowhere.yaml"],
      {},
      /^unghost: .*\/nowhere\.yaml \(ENOENT\)/,
    ],
  ];

  test.each(CASES)("%s", async (_, args, env, sentence) => {
    const ran = await unghost(args, { env });

    expect(ran.code).toBe(64);
    expect(ran.stdout).toBe("");
    expect(ran.stderr).toMatch(sentence);
    expect(ran.stderr.trimEnd()).not.toContain("\n");
  });

  test.each([
    ["an unknown key", "timeout: 3s\n\n# why\nhaunted: true\n", /config\.yaml:4:1: unknown key "haunted"; known are/],
    ["a value of the wrong kind", "output: json\ntimeout: [1, 2]\n", /config\.yaml:2:1: timeout: expected text/],
    ["an invalid value", "output: json\n\nminAge: old\n", /config\.yaml:3:1: minAge: "old" is not a duration/],
    ["invalid YAML", "timeout: 3s\nonly: [one\nskip: two\n", /config\.yaml:\d+:\d+: \S/],
    ["a list", "- timeout\n", /config\.yaml: expected settings as "key: value" lines/],
  ])("%s in the configuration file", async (_, content, sentence) => {
    const ran = await unghost(["scan", "--config", tempFile("config.yaml", content)]);

    expect(ran.code).toBe(64);
    expect(ran.stderr).toMatch(sentence);
    expect(ran.stderr.trimEnd()).not.toContain("\n");
  });
});

test("flag overrides environment overrides file", async () => {
  const node = await simulatedNode();
  const config = tempFile("config.yaml", "output: yaml\nnode: from-file\n");
  const scan = ["scan", ...node.where];
  const env = { UNGHOST_CONFIG: config };

  const fromFile = await unghost(scan, { env });
  const fromEnv = await unghost(scan, { env: { ...env, UNGHOST_OUTPUT: "json", UNGHOST_NODE: "from-env" } });
  const fromFlag = await unghost([...scan, "--node", "from-flag"], {
    env: { ...env, UNGHOST_OUTPUT: "json", UNGHOST_NODE: "from-env" },
  });

  expect(fromFile.stdout).toMatch(/^node: from-file$/m);
  expect(reportOf(fromEnv).node).toBe("from-env");
  expect(reportOf(fromFlag).node).toBe("from-flag");
});

describe("the executable", () => {
  test.each([
    ["BUN_BE_BUN", { BUN_BE_BUN: "1" }],
    ["BUN_OPTIONS", { BUN_OPTIONS: "--print 1+1" }],
    ["NODE_OPTIONS", { NODE_OPTIONS: "--eval 1" }],
    ["a variable named by equal signs alone", { "==========": "1", "===========": "--print 1+1" }],
  ])("does not become a JavaScript engine with %s", async (_, env: Record<string, string>) => {
    const ran = await unghost(["--version"], { env });

    expect(ran).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
  });

  test("opens no debugger port with BUN_INSPECT", async () => {
    const node = await simulatedNode();
    const port = await freePort();
    const agent = startAgent(["--no-kube", "--listen", "", ...node.where], { BUN_INSPECT: `ws://127.0.0.1:${port}/x` });
    await agent.logged("agent started");

    await expect(once(connect(port, "127.0.0.1"), "connect")).rejects.toThrow("ECONNREFUSED");
  });

  test("ignores files of the working directory", async () => {
    const node = await simulatedNode();
    const dir = tempDir();
    onTestFinished(() => dir.remove());
    writeFileSync(dir.join(".env"), "UNGHOST_OUTPUT=yaml\nUNGHOST_NODE=from-dotenv\n");
    writeFileSync(dir.join("bunfig.toml"), 'preload = ["./evil.js"]\n');
    writeFileSync(dir.join("evil.js"), 'console.log("evil");\n');
    writeFileSync(dir.join("package.json"), "{ broken");
    writeFileSync(dir.join("tsconfig.json"), "{ broken");

    const ran = await unghost(["scan", "-o", "json", ...node.where], { cwd: dir.path });

    expect(ran.code).toBe(0);
    expect(ran.stderr).toBe("");
    expect(reportOf(ran).node).not.toBe("from-dotenv");
  });
});

test("help lists every flag, and is the default without arguments", async () => {
  const help = await unghost(["scan", "--help"]);
  const bare = await unghost([]);

  expect(help.code).toBe(0);
  for (const flag of ["--runtime-endpoint", "--host-root", "--no-kube", "--timeout", "--only"]) {
    expect(help.stdout).toContain(flag);
  }
  expect(bare.code).toBe(0);
  expect(bare.stdout).toContain("scan");
});

test("a report that cannot be written exits 2 with one sentence", async () => {
  const node = await simulatedNode();

  const ran = await run(["sh", "-c", '"$0" scan --host-root "$1" >/dev/full', UNGHOST, node.root]);

  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(/^unghost: unexpected: .*ENOSPC/);
  expect(ran.stderr).not.toMatch(/^ {4}at /m);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
