import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SettingsError } from "../../src/cli/settings/kinds.ts";
import { resolveSettings } from "../../src/cli/settings/read.ts";
import { type NodeFlags } from "../../src/cli/settings/table.ts";
import { tempDir } from "../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function settings(flags: NodeFlags = {}, env: Readonly<Record<string, string>> = {}, file = "") {
  const config = dir.join("config.yaml");
  writeFileSync(config, file);
  return resolveSettings({ config, ...flags }, { env });
}

test("without any setting, the values are the documented defaults", async () => {
  expect(await settings()).toEqual({
    runtimeEndpoint: undefined,
    cniCacheDir: "/var/lib/cni",
    multusDir: undefined,
    stateDir: "/var/lib/unghost",
    kubeconfig: undefined,
    node: hostname(),
    noKube: false,
    hostRoot: "/",
    output: "table",
    timeoutMs: 4000,
    minAgeMs: 600_000,
    inflightGraceMs: 600_000,
    volumeAttachmentAgeMs: 300_000,
    concurrency: 32,
    only: [],
    skip: [],
    verbose: false,
  });
});

describe("flag overrides environment overrides file", () => {
  test.each([
    ["timeoutMs", { timeout: "1s" }, { UNGHOST_TIMEOUT: "2s" }, "timeout: 3s", [1000, 2000, 3000]],
    ["node", { node: "a" }, { UNGHOST_NODE: "b" }, "node: c", ["a", "b", "c"]],
    ["noKube", { noKube: false }, { UNGHOST_NO_KUBE: "true" }, "noKube: yes", [false, true, true]],
    ["only", { only: ["a"] }, { UNGHOST_ONLY: "b,c" }, "only: [d]", [["a"], ["b", "c"], ["d"]]],
    ["cniCacheDir", { cniCacheDir: "/a" }, { UNGHOST_CNI_CACHE_DIR: "/b" }, "cniCacheDir: /c", ["/a", "/b", "/c"]],
    ["concurrency", { concurrency: "1" }, { UNGHOST_CONCURRENCY: "2" }, "concurrency: 3", [1, 2, 3]],
  ] as const)("for %s", async (key, flags, env, file, [byFlag, byEnv, byFile]) => {
    expect((await settings(flags, env, file))[key]).toEqual(byFlag);
    expect((await settings({}, env, file))[key]).toEqual(byEnv);
    expect((await settings({}, {}, file))[key]).toEqual(byFile);
  });

  test("an empty variable and a key without a value are ignored", async () => {
    expect((await settings({}, { UNGHOST_TIMEOUT: "" }, "timeout:\n")).timeoutMs).toBe(4000);
  });
});

test("the node name may come from Kubernetes' NODE_NAME variable", async () => {
  expect((await settings({}, { NODE_NAME: "worker-1" })).node).toBe("worker-1");
  expect((await settings({}, { NODE_NAME: "" })).node).toBe(hostname());
});

describe("an error names the source of the value", () => {
  test.each<[string, NodeFlags, Readonly<Record<string, string>>, string, string]>([
    ["flag", { minAge: "x" }, {}, "", '--min-age: "x" is not a duration'],
    ["environment", {}, { UNGHOST_CONCURRENCY: "0" }, "", "UNGHOST_CONCURRENCY: expected a whole number from 1 to 256"],
    ["environment", {}, { UNGHOST_NO_KUBE: "perhaps" }, "", 'UNGHOST_NO_KUBE: expected true or false, got "perhaps"'],
    ["file", {}, {}, "\nhostRoot: host\n", "config.yaml:2:1: hostRoot: expected an absolute path"],
    ["file", {}, {}, "timeout: {}\n", "config.yaml:1:1: timeout: expected text, got {}"],
    ["file", {}, {}, "verbose: [1]\noutput: xml\n", "config.yaml:2:1: output: expected one of table, json, yaml"],
    ["flag", { runtimeEndpoint: "npipe://x" }, {}, "", '--runtime-endpoint: "npipe://x" is not a runtime endpoint'],
    ["flag", { timeout: "1ms" }, {}, "", "--timeout: expected at least 10ms"],
    ["flag", { timeout: "1000h" }, {}, "", "--timeout: expected at least 10ms and at most 576h"],
  ])("%s: %j %j %j", async (_, flags, env, file, message) => {
    await expect(settings(flags, env, file)).rejects.toThrow(message);
    await expect(settings(flags, env, file)).rejects.toThrow(SettingsError);
  });
});
