import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { until } from "../../lab/poll.ts";
import { tempDir } from "../support/temp-dir.ts";
import { GUARD_MS, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

function configFile(content: string): { readonly path: string; replace(content: string): void } {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  const path = dir.join("config.yaml");
  writeFileSync(path, content);
  return {
    path,
    replace: (next) => {
      writeFileSync(dir.join("next"), next);
      renameSync(dir.join("next"), path);
    },
  };
}

interface LogLine {
  readonly msg: string;
  readonly class?: string;
  readonly message?: string;
  readonly problem?: string;
}

/** A running agent, and its log so far. */
function startAgent(args: readonly string[]): {
  logged(what: string, is: (line: LogLine) => boolean): Promise<LogLine>;
} {
  const lines: LogLine[] = [];
  const agent = spawn(UNGHOST, ["agent", "--listen", "127.0.0.1:0", ...args], { env: { PATH: "/usr/bin:/bin" } });
  onTestFinished(() => {
    agent.kill("SIGKILL");
  });
  let rest = "";
  agent.stdout.on("data", (chunk: Buffer) => {
    const [last = "", ...whole] = (rest + chunk.toString()).split("\n").toReversed();
    rest = last;
    for (const line of whole.toReversed()) lines.push(JSON.parse(line));
  });
  return { logged: (what, is) => until(what, GUARD_MS, () => lines.find(is)) };
}

describe("the configuration of the executable", () => {
  test("supports time zones, and prints itself as a valid configuration file", async () => {
    const window = "{days: [mon], from: 22:00, to: 6:00, timeZone: Europe/Berlin}";
    const { path } = configFile(`agent:\n  maintenanceWindows: [${window}]\n`);

    const { code, stdout } = await unghost(["config", "--config", path]);
    const again = await unghost(["config", "--check", "--config", configFile(stdout).path]);

    expect([code, again.code]).toEqual([0, 0]);
    expect(parse(stdout)).toMatchObject({
      agent: { maintenanceWindows: [{ days: ["mon"], from: "22:00", to: "06:00", timeZone: "Europe/Berlin" }] },
    });
  });

  test.each([
    ["checked", ["config", "--check"]],
    ["shown", ["config"]],
  ])("an invalid one that is to be %s exits 64 with every error", async (_, args) => {
    const { path } = configFile(
      "agent:\n  maintenanceWindows: [{from: 1:00, to: 2:00, timeZone: Mars/Base}]\n  cap: 0\n",
    );

    const { code, stdout, stderr } = await unghost([...args, "--config", path]);

    expect([code, stdout]).toEqual([64, ""]);
    expect(stderr).toContain(`${path}:2:47: agent.maintenanceWindows[0].timeZone: expected`);
    expect(stderr).toMatch(/:3:3: agent\.cap: expected .*, got 0/);
  });

  test("a scan also validates the part that only the agent reads", async () => {
    const node = await simulatedNode();
    const { path } = configFile("agent: {scanEvry: 1m}\n");

    const { code, stderr } = await unghost(["scan", "--config", path, ...node.where]);

    expect(code).toBe(64);
    expect(stderr).toMatch(/:1:9: agent\.scanEvry: unknown key; did you mean scanEvery\?$/m);
  });
});

test("a running agent applies a new policy, and keeps the old one while the file is invalid", async () => {
  const node = await simulatedNode();
  const config = configFile("agent: {observeOnly: true}\n");
  const agent = startAgent(["--config", config.path, ...node.where]);
  node.addSandboxes(3);
  await node.powerCut();

  const seen = await agent.logged("a ghost is seen", ({ msg }) => msg === "ghost detected");
  config.replace("agent: {observeOnly: true, cap: 0}\n");
  const refused = await agent.logged("the file is refused", ({ problem }) => problem?.startsWith(config.path) === true);
  const before = await unghost(["scan", ...node.where]);
  config.replace("agent: {observeOnly: false}\n");
  await until("all ghosts are gone", GUARD_MS, async () =>
    (await unghost(["scan", ...node.where])).code === 0 ? true : undefined,
  );

  expect(seen.class).toBe("dead-after-crash");
  expect(refused.problem).toBe(`${config.path}:1:28: agent.cap: expected a whole number from 1 to 10000, got 0`);
  expect(before.code).toBe(1);
});
