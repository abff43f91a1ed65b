import { existsSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { quarantineStep } from "../../../src/heal/steps/files.ts";
import { MAX_FILE_BYTES } from "../../../src/host/safe-fs.ts";
import { failed } from "../../../src/host/source.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf, shimOf } from "../../support/snapshot-builder.ts";
import { writeWithParents } from "../../support/temp-dir.ts";
import { criSandbox, type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const RESULT = `results/cbr0-${ID}-eth0`;
const SOUND_RESULT = JSON.stringify({ kind: "cniCacheV1", containerId: ID, result: { cniVersion: "1.0.0" } });
const STRIPPED = JSON.stringify([
  {
    ConfList: { plugins: [{ type: "kube-ovn" }] },
    CNINetworkConfigList: { Plugins: [{ Bytes: bytesOf({ type: "kube-ovn", server_socket: "/run/x" }) }] },
  },
]);

function bytesOf(config: object): string {
  return Buffer.from(JSON.stringify(config)).toString("base64");
}

type Health = Parameters<typeof quarantineStep>[0]["health"];

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

function put(name: string, content: string): string {
  return writeWithParents(join(fixture.caches, name), content);
}

function quarantined(path: string, health: Health, node: FakeNode = {}) {
  const tools = fakeTools(fixture, node);
  return journalOf(fixture, quarantineStep({ kind: "quarantine-file", path, health }, FINDING, tools));
}

describe("quarantine-file moves a broken file of a dead sandbox", () => {
  test.each<readonly [string, string, string, Health]>([
    ["an empty result", RESULT, "", "empty"],
    ["an empty flannel file", `flannel/${ID}`, "", "empty"],
    ["an empty multus delegates file", `multus/${ID}`, "", "empty"],
    ["a truncated result", RESULT, '{"kind":', "corrupt"],
    ["a truncated flannel file", `flannel/${ID}`, "[", "corrupt"],
    ["a multus delegates file with an empty list", `multus/${ID}`, "[]", "corrupt"],
    ["delegates without a setting that DEL needs", `multus/${ID}`, STRIPPED, "stripped"],
  ])("%s", async (_, name, content, health) => {
    const path = put(name, content);

    const { result, history } = await quarantined(path, health, { sandboxes: [criSandbox(ID)] });

    expect([result, existsSync(path)]).toMatchObject([{ kind: "done", undoable: true }, false]);
    expect(history).toMatchObject([{ action: { kind: "quarantine-file", path }, outcome: "healed" }]);
  });

  test("also when the sandbox is gone", async () => {
    const path = put(RESULT, "");
    expect((await quarantined(path, "empty")).result.kind).toBe("done");
  });
});

describe("quarantine-file keeps a broken file", () => {
  test.each<readonly [string, FakeNode]>([
    ["is Ready", { sandboxes: [criSandbox(ID, { state: PodSandboxState.SANDBOX_READY })] }],
    ["has a shim", { sandboxes: [criSandbox(ID)], processes: { shims: [shimOf("a")] } }],
    ["is not proven dead", { sandboxes: [criSandbox(ID)], processes: failed("no /proc") }],
  ])("when its sandbox %s", async (_, node) => {
    const path = put(RESULT, "");

    const { result, history } = await quarantined(path, "empty", node);

    expect([result, existsSync(path), history]).toMatchObject([{ kind: "refused", code: "not-dead" }, true, []]);
  });

  test.each<readonly [string, string, string, Health]>([
    ["a result", RESULT, SOUND_RESULT, "corrupt"],
    ["flannel's file", `flannel/${ID}`, "{}", "corrupt"],
    ["multus' delegates", `multus/${ID}`, '[{"Conf":{}}]', "corrupt"],
    ["delegates with all their settings", `multus/${ID}`, '[{"Conf":{}}]', "stripped"],
    ["delegates that are not a list", `multus/${ID}`, "{", "stripped"],
  ])("when it was written again: %s", async (_, name, content, health) => {
    const path = put(name, content);

    const { result } = await quarantined(path, health);

    expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "file-not-broken" }, true]);
  });

  test("when it is too large for a cache file", async () => {
    const path = put(RESULT, "");
    truncateSync(path, MAX_FILE_BYTES + 1);
    const { result } = await quarantined(path, "corrupt");
    expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "file-not-broken" }, true]);
  });

  test("when the journal cannot be written", async () => {
    const path = put(RESULT, "");
    await fixture.journal.close();
    const result = await quarantineStep(
      { kind: "quarantine-file", path, health: "empty" },
      FINDING,
      fakeTools(fixture),
    );
    expect([result, existsSync(path)]).toMatchObject([
      { kind: "refused", code: "file-refused", reason: expect.stringContaining("journal") },
      true,
    ]);
  });

  test("when its name contains no sandbox id", async () => {
    const path = put("results/cbr0-web-eth0", "");
    expect((await quarantined(path, "empty")).result).toMatchObject({ kind: "refused", code: "names-no-sandbox" });
  });

  test("when it is a link", async () => {
    const path = join(fixture.caches, ID);
    symlinkSync("/etc/hostname", path);
    expect((await quarantined(path, "empty")).result).toMatchObject({ kind: "refused", code: "file-refused" });
  });
});

describe("a leaked file", () => {
  test("is quarantined with any content", async () => {
    const path = put(RESULT, SOUND_RESULT);
    const { result } = await quarantined(path, "orphaned");
    expect([result.kind, existsSync(path)]).toEqual(["done", false]);
  });

  test.each<readonly [string, FakeNode]>([
    ["the runtime lists its sandbox", { sandboxes: [criSandbox(ID)] }],
    ["a shim carries its id", { processes: { shims: [shimOf("a")] } }],
    ["unknown", { processes: failed("no /proc") }],
  ])("stays when %s", async (_, node) => {
    const path = put(RESULT, SOUND_RESULT);
    const { result } = await quarantined(path, "orphaned", node);
    expect([result, existsSync(path)]).toMatchObject([{ kind: "refused", code: "still-referenced" }, true]);
  });
});
