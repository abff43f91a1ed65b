import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { runCli } from "../../../src/cli/app.ts";
import type { Io } from "../../../src/cli/io.ts";
import { tempDir } from "../../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `unghost config` with this file; positions are printed without the directory. */
async function config(file: string, args: readonly string[] = [], env: Io["env"] = {}): Promise<Ran> {
  const path = dir.join("config.yaml");
  writeFileSync(path, file);
  const printed = { stdout: "", stderr: "" };
  const code = await runCli(["config", "--config", path, ...args], {
    stdout: (text) => (printed.stdout += text),
    stderr: (text) => (printed.stderr += text),
    env,
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 80,
    stdin: () => {
      throw new Error("not expected");
    },
  });
  return {
    code,
    stdout: printed.stdout.replaceAll(`${dir.path}/`, ""),
    stderr: printed.stderr.replaceAll(`${dir.path}/`, ""),
  };
}

describe("the effective configuration", () => {
  test("names the source of each value", async () => {
    const file =
      "minAge: 5m\nagent:\n  cap: 7\n  classes:\n    shim-leak: heal\n    pod-gone: {attempts: 9}\n  defaults: {coolDown: 40s}\n";
    const env = { UNGHOST_TIMEOUT: "9s", UNGHOST_LISTEN: ":99", NODE_NAME: "worker-3" };

    const { code, stdout } = await config(file, ["--no-kube", "--log-level", "warn"], env);

    expect(code).toBe(0);
    const lines = stdout.split("\n").map((line) => line.trim());
    for (const line of [
      "minAge: 5m # config.yaml:1:1",
      "timeout: 9s # UNGHOST_TIMEOUT",
      "node: worker-3 # NODE_NAME",
      "noKube: true # --no-kube",
      "inflightGrace: 10m # default",
      "cap: 7 # config.yaml:3:3",
      "mode: heal # config.yaml:5:5",
      "attempts: 9 # config.yaml:6:16",
      "coolDown: 40s # config.yaml:7:14",
      "listen: :99 # UNGHOST_LISTEN",
      "logLevel: warn # --log-level",
      "slots: 3 # default",
    ]) {
      expect(lines).toContain(line);
    }
  });

  test("shows the original mode when observeOnly changed it", async () => {
    const { stdout } = await config("agent: {observeOnly: true, classes: {pod-gone: heal, shim-leak: off}}\n");

    expect(stdout).toContain("    pod-gone:\n      mode: observe # config.yaml:1:9\n");
    expect(stdout).toContain("    shim-lost:\n      mode: observe # default\n");
    expect(stdout).toContain("    shim-leak:\n      mode: off # config.yaml:1:54\n");
  });

  test("is a configuration file with the same meaning", async () => {
    const file =
      "only: [pod-gone]\nagent:\n  maintenanceWindows: [{days: [mon], from: 22:00, to: 6:00, timeZone: Europe/Berlin}]\n  fleet: {breakerShare: 0.25}\n";
    const first = await config(file);
    const second = await config(first.stdout);

    expect(second.code).toBe(0);
    expect(parse(second.stdout)).toEqual(parse(first.stdout));
  });

  test("is available as JSON, with the source beside the value", async () => {
    const { stdout } = await config("agent: {cap: 7}\n", ["-o", "json"]);

    expect(JSON.parse(stdout)).toMatchObject({
      timeout: { value: "4s", from: "default" },
      output: { value: "json", from: "--output" },
      agent: {
        cap: { value: 7, from: "config.yaml:1:9" },
        ignoreNamespaces: { value: [], from: "default" },
        classes: { "shim-leak": { mode: { value: "observe", from: "default" } } },
      },
    });
  });
});

describe("an invalid configuration", () => {
  test.each([
    ["with --check", ["--check"]],
    ["without", []],
  ])("%s exits 64 with every error on its own line", async (_, args) => {
    const { code, stdout, stderr } = await config(
      "timeuot: 1s\nminAge: old\nskip: [poltergeist]\nagent: {cap: 0}\n",
      args,
      { UNGHOST_CONCURRENCY: "many" },
    );

    expect([code, stdout]).toEqual([64, ""]);
    expect(stderr.split("\n")).toEqual([
      'unghost: config.yaml:1:1: unknown key "timeuot"; did you mean timeout?',
      expect.stringMatching(/^unghost: config\.yaml:2:1: minAge: "old" is not a duration/),
      expect.stringMatching(/^unghost: UNGHOST_CONCURRENCY: expected a whole number/),
      expect.stringMatching(/^unghost: unknown failure class "poltergeist"/),
      expect.stringMatching(/^unghost: config\.yaml:4:9: agent\.cap: expected a whole number .*, got 0$/),
      "",
    ]);
  });

  test("may be a missing file", async () => {
    const { code, stderr } = await config("", ["--check", "--config", "/nowhere.yaml"]);

    expect([code, stderr]).toEqual([64, expect.stringMatching(/nowhere\.yaml/)]);
  });
});

test("--check reports that it is valid", async () => {
  expect(await config("agent: {cap: 7}\n", ["--check"])).toEqual({
    code: 0,
    stdout: "config.yaml is valid.\n",
    stderr: "",
  });
});
