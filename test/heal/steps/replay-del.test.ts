import { chmodSync, existsSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { replayCachedDel } from "../../../src/heal/steps/networks.ts";
import { PodSandboxState, PodSandboxStatusResponse } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf, shimOf } from "../../support/snapshot-builder.ts";
import { writeWithParents } from "../../support/temp-dir.ts";
import { criSandbox, type FakeNode, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const ADDRESS = "10.88.0.9";
const DAEMON_DOWN = "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused";

let fixture: HealFixture;
let path: string;
let called: string;

beforeEach(async () => {
  fixture = await makeHealFixture();
  path = join(fixture.caches, `results/cbr0-${ID}-eth0`);
  called = join(fixture.caches, "called");
  cache([{ type: "bridge" }]);
  install("bridge", `echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME" > ${called}`);
});
afterEach(() => fixture.remove());

function install(type: string, onDel: string): void {
  const plugin = join(fixture.caches, "bin", type);
  writeWithParents(plugin, `#!/bin/sh\n${onDel}\n`);
  chmodSync(plugin, 0o755);
}

function cache(plugins: readonly object[], more: object = {}): void {
  const config = Buffer.from(JSON.stringify({ cniVersion: "1.0.0", name: "cbr0", plugins })).toString("base64");
  const result = { cniVersion: "1.0.0", ips: [{ address: `${ADDRESS}/24` }] };
  writeWithParents(
    path,
    JSON.stringify({ kind: "cniCacheV1", containerId: ID, ifName: "eth0", config, result, ...more }),
  );
}

function replayed(node: FakeNode = {}) {
  const tools = fakeTools(fixture, { ...node, tools: { binDirs: [join(fixture.caches, "bin")], ...node.tools } });
  return journalOf(fixture, replayCachedDel({ kind: "replay-del", path, sandboxId: ID }, FINDING, tools));
}

/** One other pod runs with this address. */
function podWith(ip: string): FakeNode {
  const other = criSandbox(idOf("b"), { state: PodSandboxState.SANDBOX_READY });
  const status = PodSandboxStatusResponse.fromPartial({ status: { network: { ip } } });
  return { sandboxes: [other], cri: { podSandboxStatus: () => Promise.resolve(status) } };
}

test("calls DEL from the cached record, and journals it", async () => {
  const { result, history } = await replayed(podWith("10.88.0.2"));

  expect([result.kind, existsSync(called)]).toEqual(["done", true]);
  expect(history).toMatchObject([{ action: { kind: "replay-del", path, sandboxId: ID }, outcome: "healed" }]);
});

test("calls no DEL while the sandbox is referenced", async () => {
  const { result, history } = await replayed({ processes: { shims: [shimOf("a")] } });

  expect([result, existsSync(called), history]).toMatchObject([{ code: "still-referenced" }, false, []]);
});

test("calls no DEL when a running pod has its address now", async () => {
  const { result, history } = await replayed(podWith(ADDRESS));

  expect([result, existsSync(called), history]).toMatchObject([{ code: "address-in-use" }, false, []]);
});

test.each<readonly [string, () => void]>([
  ["without its configuration", () => cache([{ type: "bridge" }], { config: undefined })],
  ["that is unreadable", () => writeWithParents(path, "{")],
  ["that names another sandbox", () => cache([{ type: "bridge" }], { containerId: idOf("b") })],
  ["whose plugins hold nothing", () => cache([{ type: "loopback" }, { type: "multus" }])],
  ["whose plugin is the shim of thick multus", () => cache([{ type: "multus-shim" }])],
  [
    "whose file name is not that of a result",
    () => {
      path = join(fixture.caches, "results/odd");
      cache([{ type: "bridge" }]);
    },
  ],
  [
    "behind a symbolic link",
    () => {
      renameSync(path, `${path}.real`);
      symlinkSync(`${path}.real`, path);
    },
  ],
  [
    "that is gone",
    () => {
      path = join(fixture.caches, `results/cbr0-${ID}-eth9`);
    },
  ],
])("calls nothing from a record %s", async (_, change) => {
  change();
  const { result, history } = await replayed();
  expect([result, existsSync(called), history]).toEqual([{ kind: "unneeded" }, false, []]);
});

test("calls a plugin that holds something although another of its chain holds nothing", async () => {
  cache([{ type: "bridge" }, { type: "loopback" }]);
  install("loopback", "exit 0");
  expect([(await replayed()).result.kind, existsSync(called)]).toEqual(["done", true]);
});

test("drops the record when a plugin refuses permanently, and reports the failed DEL", async () => {
  install("bridge", "echo no such network; exit 1");
  expect((await replayed()).result).toMatchObject({
    kind: "done",
    detail: expect.stringContaining("no such network"),
    effect: { code: "del-incomplete", text: expect.stringContaining("its plugins (bridge)") },
  });
});

test("keeps the record for a retry when the plugin's daemon is down", async () => {
  install("bridge", `echo '${DAEMON_DOWN}'; exit 1`);
  const { result, history } = await replayed();
  expect(result).toMatchObject({ kind: "failed", code: "del-undelivered", text: expect.stringContaining("kube-ovn") });
  expect(history).toMatchObject([{ outcome: "failed" }]);
});
