import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { durationText, parseDurationMs } from "../../src/cli/settings/kinds.ts";
import { checkAgent, policyFrom, readAgentPolicy } from "../../src/cli/settings/policy.ts";
import { type AgentFlags } from "../../src/cli/settings/table.ts";
import { tempDir } from "../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function readPolicy(content: string, flags: AgentFlags = {}, env: Readonly<Record<string, string>> = {}) {
  const config = dir.join("config.yaml");
  writeFileSync(config, content);
  return readAgentPolicy({ config, ...flags }, env);
}

async function policyOf(...asked: Parameters<typeof readPolicy>) {
  const read = await readPolicy(...asked);
  if (!read.ok) throw new Error(read.problems.join("\n"));
  return read.value;
}

async function problemsOf(...asked: Parameters<typeof readPolicy>): Promise<readonly string[]> {
  const read = await readPolicy(...asked);
  return read.ok ? [] : read.problems.map((problem) => problem.replace(dir.path, ""));
}

describe("without an agent section", () => {
  test.each([
    ["no agent part", "timeout: 3s\n"],
    ["an empty one", "agent:\n"],
    ["keys without values", "agent:\n  classes:\n    pod-gone:\n  fleet:\n  cap:\n"],
  ])("%s: uses the defaults", async (_, content) => {
    const { policy, service } = await policyOf(content);

    expect(policy).toEqual(policyFrom({}));
    expect(service).toEqual({ listen: "127.0.0.1:20258", logLevel: "info" });
  });
});

describe("classes", () => {
  test("a bare string is the mode, and the rest keeps its default", async () => {
    const { policy } = await policyOf("agent:\n  classes:\n    shim-leak: heal\n    pod-gone: off\n");
    const before = policyFrom({}).classes;

    expect(policy.classes.get("shim-leak")).toEqual({ ...before.get("shim-leak"), mode: "heal" });
    expect(policy.classes.get("pod-gone")?.mode).toBe("off");
    expect(policy.classes.get("dead-after-crash")).toEqual(before.get("dead-after-crash"));
  });

  test("a class may be named by its code", async () => {
    const { policy } = await policyOf("agent:\n  classes:\n    c8: heal\n    S3: off\n");

    expect(policy.classes.get("shim-leak")?.mode).toBe("heal");
    expect(policy.classes.get("pod-gone")?.mode).toBe("off");
  });

  test("a class setting overrides the setting for all, which overrides the default", async () => {
    const { policy } = await policyOf(
      "agent:\n  defaults: {minAge: 1m, attempts: 9}\n  classes:\n    pod-gone: {minAge: 90s, within: 2h, coolDown: 5}\n",
    );

    expect(policy.classes.get("pod-gone")).toEqual({
      mode: "heal",
      minAgeMs: 90_000,
      attempts: 9,
      attemptsWithinMs: 7_200_000,
      coolDownMs: 5000,
    });
    expect(policy.classes.get("dead-after-crash")).toMatchObject({ minAgeMs: 60_000, attempts: 9 });
  });

  test("defaults.mode disables healing of every class that is not named", async () => {
    const { policy } = await policyOf("agent:\n  defaults: {mode: observe}\n  classes: {pod-gone: heal}\n");

    expect(policy.classes.get("dead-after-crash")?.mode).toBe("observe");
    expect(policy.classes.get("pod-gone")?.mode).toBe("heal");
  });

  test("observeOnly disables healing of everything, and keeps off what is off", async () => {
    const { policy } = await policyOf("agent:\n  classes: {shim-leak: heal, pod-gone: off}\n", { observeOnly: true });

    expect([...policy.classes.values()].filter(({ mode }) => mode === "heal")).toEqual([]);
    expect(policy.classes.get("pod-gone")?.mode).toBe("off");
  });
});

test("accepts every other key", async () => {
  const { policy, service } = await policyOf(`
agent:
  scanEvery: 5m
  maintenanceWindows:
    - {days: [mon, sun], from: "22:00", to: "6:30", timeZone: Europe/Berlin}
    - {from: 00:00, to: 24:00}
  ignoreNamespaces: [kube-system]
  cap: 7
  fleet: {slots: 2, namespace: tools, breakerShare: 0.5, breakerAtLeast: 9, breakerNodes: 40}
  listen: "[::]:9999"
  tlsCert: /tls.crt
  tlsKey: /tls.key
  tokenFile: /token
  textfile: /unghost.prom
  logLevel: warn
`);

  expect(policy).toMatchObject({
    scanEveryMs: 300_000,
    maintenanceWindows: [
      { days: [1, 0], fromMinute: 1320, toMinute: 390, timeZone: "Europe/Berlin" },
      { days: [], fromMinute: 0, toMinute: 1440, timeZone: "UTC" },
    ],
    ignoredNamespaces: ["kube-system"],
    cap: 7,
    fleet: { slots: 2, namespace: "tools", breakerShare: 0.5, breakerLeast: 9, breakerNodes: 40 },
  });
  expect(service).toEqual({
    listen: "[::]:9999",
    tls: { certFile: "/tls.crt", keyFile: "/tls.key" },
    tokenFile: "/token",
    textfile: "/unghost.prom",
    logLevel: "warn",
  });
});

test("flag overrides environment overrides file", async () => {
  const file = "agent: {scanEvery: 10s, logLevel: warn, listen: ':1'}\n";
  const env = { UNGHOST_SCAN_EVERY: "20s", UNGHOST_LOG_LEVEL: "error", UNGHOST_OBSERVE_ONLY: "yes" };

  const { policy, service } = await policyOf(file, { scanEvery: "30s" }, env);

  expect([policy.scanEveryMs, service.logLevel, service.listen]).toEqual([30_000, "error", ":1"]);
  expect(policy.classes.get("pod-gone")?.mode).toBe("observe");
});

describe("an invalid setting is reported with its line, path, expected type and value", () => {
  test.each([
    [
      "a duration",
      "agent:\n  scanEvery: soon\n",
      ':2:3: agent.scanEvery: expected a duration from 10ms to 24h, like 90s, 10m or 1h30m, got "soon"',
    ],
    [
      "a duration out of range",
      "agent: {scanEvery: 25h}\n",
      ':1:9: agent.scanEvery: expected a duration from 10ms to 24h, like 90s, 10m or 1h30m, got "25h"',
    ],
    ["a misspelt key", "agent:\n  scanEvry: 5s\n", ":2:3: agent.scanEvry: unknown key; did you mean scanEvery?"],
    [
      "an unknown key",
      "agent:\n  fleet:\n    colour: red\n",
      ":3:5: agent.fleet.colour: unknown key; known are slots, namespace, breakerShare, breakerAtLeast, breakerNodes",
    ],
    [
      "a misspelt class",
      "agent:\n  classes:\n    dead-after-crsh: heal\n",
      ":3:5: agent.classes.dead-after-crsh: unknown failure class; did you mean dead-after-crash?",
    ],
    [
      "a part of a class",
      "agent:\n  classes: {nodename: observe}\n",
      ":2:13: agent.classes.nodename: unknown failure class; did you mean calico-nodename-missing?",
    ],
    [
      "a mode",
      "agent:\n  classes: {pod-gone: hael}\n",
      ':2:13: agent.classes.pod-gone.mode: expected observe, heal, off, got "hael"',
    ],
    [
      "a class without settings",
      "agent:\n  classes: {kernel-netns-hang: heal}\n",
      ":2:13: agent.classes.kernel-netns-hang: unghost has no automatic treatment for it: set it to observe or off",
    ],
    [
      "healing by default",
      "agent:\n  defaults: {mode: heal}\n",
      ':2:14: agent.defaults.mode: expected observe, got "heal"',
    ],
    [
      "a window without an end",
      "agent:\n  maintenanceWindows:\n    - from: '22:00'\n",
      ":3:7: agent.maintenanceWindows[0].to: missing",
    ],
    [
      "a day",
      "agent: {maintenanceWindows: [{days: [monday], from: 1:00, to: 2:00}]}\n",
      ':1:38: agent.maintenanceWindows[0].days[0]: expected sun, mon, tue, wed, thu, fri, sat, got "monday"',
    ],
    [
      "a time zone",
      "agent: {maintenanceWindows: [{from: 1:00, to: 2:00, timeZone: Mars/Base}]}\n",
      ':1:53: agent.maintenanceWindows[0].timeZone: expected the name of a time zone, like Europe/Berlin or UTC, got "Mars/Base"',
    ],
    [
      "a window of zero length",
      "agent: {maintenanceWindows: [{from: 1:00, to: 1:00}]}\n",
      ":1:30: agent.maintenanceWindows[0]: from and to are the same: without any window, acting is always allowed",
    ],
    [
      "a list in place of a section",
      "agent:\n  fleet: [1]\n",
      ":2:3: agent.fleet: expected keys and values below it, got [1]",
    ],
    ["a string instead of everything", "agent: on\n", ':1:1: agent: expected keys and values below it, got "on"'],
    ["half of a pair", "agent: {tlsCert: /c}\n", ":1:1: agent: tlsCert and tlsKey go together: give both, or none"],
    ["no YAML", "agent: [\n", /^:\d+:\d+: \S/],
  ])("%s", async (_, content, expected) => {
    const [problem, ...more] = await problemsOf(content);

    expect(more).toEqual([]);
    expect(problem?.replace("/config.yaml", "")).toEqual(
      typeof expected === "string" ? expected : expect.stringMatching(expected),
    );
  });

  test("reports all of them at once, in the order of the file", async () => {
    const problems = await problemsOf(
      "cap: 1\nagent:\n  logLevel: loud\n  classes:\n    pod-gone: {attempts: 0, tries: 3}\n    ghost: heal\n  cap: many\n",
    );

    expect(problems.map((problem) => problem.split(": ")[0])).toEqual([
      "/config.yaml:1:1",
      "/config.yaml:3:3",
      "/config.yaml:5:16",
      "/config.yaml:5:29",
      "/config.yaml:6:5",
      "/config.yaml:7:3",
    ]);
  });

  test("names the flag or variable instead of the file", async () => {
    expect(await problemsOf("", { listen: "nowhere" }, { UNGHOST_TEXTFILE: "here" })).toEqual([
      expect.stringMatching(/^--listen: expected HOST:PORT/),
      'UNGHOST_TEXTFILE: expected an absolute path, got "here"',
    ]);
  });

  test("reports conflicting flags, without a file", async () => {
    const read = checkAgent(undefined, new Map([["tlsCert", { value: "/c", from: "--tls-cert" }]]));

    expect(read).toEqual({ ok: false, problems: ["agent: tlsCert and tlsKey go together: give both, or none"] });
  });

  test("reports a requested file that does not exist", async () => {
    const read = await readAgentPolicy({ config: dir.join("none.yaml") }, {});

    expect(read).toEqual({ ok: false, problems: [expect.stringContaining("none.yaml (ENOENT)")] });
  });
});

test("any YAML gives a policy or errors, never an exception", async () => {
  const anyPart = fc.oneof(
    fc.anything({ withNullPrototype: false, maxDepth: 3 }),
    fc.dictionary(
      fc.constantFrom("classes", "fleet", "defaults", "cap", "maintenanceWindows", "listen"),
      fc.jsonValue(),
    ),
    fc.record({ classes: fc.dictionary(fc.constantFrom("pod-gone", "shim-leak", "constructor"), fc.jsonValue()) }),
  );
  await fc.assert(
    fc.asyncProperty(anyPart, async (agent) => {
      const read = await readPolicy(
        JSON.stringify({ agent }, (_, value: unknown) => (typeof value === "bigint" ? 1 : value)),
      );

      if (read.ok) expect(read.value.policy.classes.size).toBe(policyFrom({}).classes.size);
      else expect(read.problems.join("")).toMatch(/config\.yaml/);
    }),
  );
});

test("a formatted duration is parsed to the same value", () => {
  fc.assert(fc.property(fc.nat({ max: 1_000_000_000 }), (ms) => parseDurationMs(durationText(ms)) === ms));
  expect([0, 90_000, 3_600_000, 500].map(durationText)).toEqual(["0s", "1m30s", "1h", "500ms"]);
});
