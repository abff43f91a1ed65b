import { readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { listedIds, treeOf } from "./healed-node.ts";
import { kubeletKnows } from "./scanned-node.ts";
import { simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const CONFIG = ["--containerd-config", "/etc/containerd/config.toml"];

async function boot(on: LabNode, ...flags: string[]) {
  return await on.exec([UNGHOST, "boot", "--no-kube", ...flags], { timeoutMs: HANG_GUARD_MS });
}

function bootReport(of: LabNode): { readonly outcome: string; readonly reason: string; readonly healed: number } {
  return JSON.parse(readFileSync(of.path("/var/lib/unghost/boot.json"), "utf8"));
}

async function processNames(of: LabNode): Promise<readonly string[]> {
  const { stdout } = await of.exec(["sh", "-c", "cat /proc/[0-9]*/comm"]);
  return stdout.split("\n");
}

describe("boot before the runtime starts", () => {
  eachRuntime("heals what died in the power cut, and the starting runtime lists none of it", async (runtime) => {
    const node = await start({ runtime });
    await runPods(node, 20);
    await finishedPod(node);
    await node.powerCut();
    await node.powerOn({ runtime: false });

    const { code, stdout } = await boot(node, ...CONFIG);

    expect(stdout).toContain("20 healed");
    expect(code).toBe(0);
    expect(await processNames(node)).not.toContain("containerd");
    expect(readdirSync(node.livePath("/run/unghost"))).not.toContain("borrowed");
    await node.startRuntime();
    const listed = await node.cri.listPodSandbox(undefined, CALL);
    expect(listed.map(({ metadata }) => metadata?.name)).toEqual(["finished"]);
    expect(readdirSync(node.path("/var/lib/cni/networks/cbr0")).filter((name) => name.startsWith("10."))).toEqual([]);
  });

  eachRuntime("changes nothing while pods are running, also the second time", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "alive" });
    await node.stopRuntime();

    const first = await boot(node, ...CONFIG);
    const second = await boot(node, ...CONFIG, "--strict");

    expect([first.code, second.code]).toEqual([0, 0]);
    expect(first.stdout).toContain("pods are alive");
    expect(second.stdout).toContain("pods are alive");
    await node.startRuntime();
    const [listed] = await node.cri.listPodSandbox(undefined, CALL);
    expect(listed).toMatchObject({ id: pod.sandboxId, state: 0 });
  });
});

test("on a node with a kubelet only what needs a repair is healed before the start", async () => {
  const node = await start({ runtime: "1.6" });
  const pods = await runPods(node, 3, { containers: [{ name: "main" }] });
  kubeletKnows(node, ...pods);
  const [torn, ...others] = pods;
  if (torn === undefined) throw new Error("three were made");
  await node.powerCut();
  await emptyResultCache(node, torn);
  await node.powerOn({ runtime: false });
  const calico = "/etc/cni/net.d/00-calico.conflist";
  const plugins = [{ type: "calico" }];

  const besideKubelet = (...flags: string[]) =>
    node.exec([UNGHOST, "boot", ...CONFIG, ...flags], { timeoutMs: HANG_GUARD_MS });

  const planned = await besideKubelet("--dry-run");
  await node.writeFile(calico, JSON.stringify({ cniVersion: "1.0.0", name: "k8s-pod-network", plugins }));
  const withoutAgent = await besideKubelet("--dry-run");
  await node.check(["rm", calico]);
  const { stdout } = await besideKubelet();

  expect(planned.stdout).toContain("those that need no repair are left to kubelet");
  expect(withoutAgent.stdout).toContain("calico needs its agent");
  expect(withoutAgent.stdout).toContain("Would leave (3):");
  expect(withoutAgent.stdout).not.toContain("Would heal");
  expect(stdout).toContain("1 healed in");
  expect(bootReport(node)).toMatchObject({
    outcome: "healed",
    healed: 1,
    reason: expect.stringContaining("2 dead sandboxes need no repair and are left to kubelet"),
  });
  await node.startRuntime();
  expect(await listedIds(node)).toEqual(expect.arrayContaining(others.map(({ sandboxId }) => sandboxId)));
});

describe("boot --dry-run", () => {
  const state = (of: LabNode) => [
    treeOf(of.path("/var/lib/unghost")),
    treeOf(of.path("/var/lib/cni")),
    treeOf(of.livePath("/run/unghost")),
    treeOf(of.path("/var/lib/containerd/io.containerd.metadata.v1.bolt")),
  ];

  test("reports what a boot would heal before and after the runtime's start, and changes nothing", async () => {
    const node = await start();
    const torn = await runPod(node, { name: "torn" });
    const pods = [torn, ...(await runPods(node, 2))];
    await finishedPod(node);
    const { path = "" } = await emptyResultCache(node, torn);
    // Long before the machine's own boot, which is also that of the lab's nodes.
    utimesSync(node.path(path), new Date(1e12), new Date(1e12));
    await node.powerCut();
    await node.powerOn({ runtime: false });
    const before = state(node);

    const borrow = await boot(node, ...CONFIG, "--dry-run");
    const strict = await boot(node, ...CONFIG, "--dry-run", "--strict", "-o", "json");
    const none = await boot(node, "--containerd-bin", "/nowhere/containerd", "--dry-run", "--strict");

    expect(state(node)).toEqual(before);
    expect(await processNames(node)).not.toContain("containerd");
    expect([borrow.code, strict.code, none.code]).toEqual([0, 1, 2]);
    expect(borrow.stdout).toContain("would heal through a borrowed containerd");
    expect(borrow.stdout).toContain("Dry run: nothing was changed");
    expect(JSON.parse(strict.stdout)).toMatchObject({ kind: "BootPlan", mode: "before", way: "borrow" });
    for (const { sandboxId } of pods) expect(borrow.stdout).toContain(sandboxId);
    expect(none.stdout).toContain("would only move broken cache files to quarantine");
    expect(none.stdout).toContain(path);

    await node.startRuntime();
    const running = await boot(node, "--after", "--dry-run", "--strict", "-o", "json");
    expect(running.code).toBe(1);
    expect(JSON.parse(running.stdout)).toMatchObject({ way: "through-runtime", heal: { length: 3 }, leave: [] });
    expect(await listedIds(node)).toHaveLength(4);

    expect(await boot(node, "--after")).toMatchObject({ code: 0, stdout: expect.stringContaining("3 healed") });
    const again = await boot(node, "--after", "--dry-run", "--strict");
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("would do nothing: it has already run")]);
  });

  test("is refused together with --repair", async () => {
    const { code, stderr } = await unghost(["boot", "--dry-run", "--repair"]);
    expect([code, stderr]).toEqual([64, expect.stringContaining("--dry-run")]);
  });
});

describe("boot before containerd 1.6 starts", () => {
  async function nodeWithGhosts(): Promise<LabNode> {
    const started = await start({ runtime: "1.6" });
    const pods = await runPods(started, 2);
    await started.powerCut();
    const [first] = pods;
    if (first !== undefined) await emptyResultCache(started, first);
    await started.powerOn({ runtime: false });
    return started;
  }

  test("heals a corrupt cache before the runtime starts", async () => {
    const on = await nodeWithGhosts();

    await boot(on, ...CONFIG);

    expect(bootReport(on)).toMatchObject({ outcome: "healed", healed: 2 });
    const history = await on.exec([UNGHOST, "history"]);
    expect(history.stdout).toContain("Last boot (before the runtime's start");
  });

  test.each([
    ["hangs", "#!/bin/sh\nexec sleep 1000\n", "did not answer in time"],
    ["crashes", "#!/bin/sh\necho 'level=fatal msg=\"no luck\"'\nexit 3\n", "no luck"],
  ])("lets the node start when containerd %s", async (_what, script, reason) => {
    const on = await nodeWithGhosts();
    await on.writeFile("/opt/fake/containerd", script, 0o755);

    const { code } = await boot(on, ...CONFIG, "--containerd-bin", "/opt/fake/containerd", "--deadline", "4s");

    expect(code).toBe(0);
    expect(bootReport(on).outcome).toBe("failed");
    expect(bootReport(on).reason).toContain(reason);
    const { stdout } = await on.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]);
    expect(stdout).not.toContain("sleep 1000");
  });

  test("lets the node start when the metadata file is damaged, and --strict reports it", async () => {
    const on = await nodeWithGhosts();
    await on.writeFile("/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db", "not a database");

    const usual = await boot(on, ...CONFIG, "--deadline", "15s");
    const strict = await boot(on, ...CONFIG, "--deadline", "15s", "--strict");

    expect([usual.code, strict.code]).toEqual([0, 2]);
    expect(bootReport(on).outcome).toBe("failed");
  });

  test("lists the searched paths when there is no containerd to start", async () => {
    const on = await nodeWithGhosts();

    const { code, stdout } = await boot(on, "--containerd-bin", "/nowhere/containerd");

    expect(code).toBe(0);
    expect(stdout).toContain("there is no /nowhere/containerd; name it with --containerd-bin");
  });

  test("runs once per boot, and again when forced", async () => {
    const on = await nodeWithGhosts();

    await boot(on, ...CONFIG);
    const again = await boot(on, ...CONFIG);
    const forced = await boot(on, ...CONFIG, "--force");

    expect(again.stdout).toContain("already run in this boot");
    expect(forced.stdout).toContain("no ghosts are left");
  });

  test("on a full disk touches nothing, because there is no journal, and lets the node start", async () => {
    const on = await nodeWithGhosts();
    await on.check(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/var/lib/unghost"]);
    await on.exec(["sh", "-c", "cat /dev/zero >/var/lib/unghost/fill"]);

    const { code, stdout } = await boot(on, ...CONFIG);

    expect(code).toBe(0);
    expect(stdout).toContain("failed");
    expect(JSON.parse(readFileSync(on.livePath("/run/unghost/boot.json"), "utf8"))).toMatchObject({
      outcome: "failed",
    });
    expect(await processNames(on)).not.toContain("containerd");
  });
});

describe("boot --after", () => {
  test("waits for the runtime and heals through it", async () => {
    const node = await start({ runtime: "1.6" });
    await runPods(node, 3);
    await node.powerCut();
    await node.powerOn({ runtime: false });

    const hook = boot(node, "--after");
    await node.startRuntime();
    const { stdout, code } = await hook;

    expect(stdout).toContain("3 healed");
    expect(code).toBe(0);
  });

  test("times out when no runtime starts", async () => {
    const node = await start({ runtime: "1.6" });
    await node.stopRuntime();

    const { stdout, code } = await boot(node, "--after", "--deadline", "3s");

    expect(stdout).toContain("failed");
    expect(code).toBe(0);
  });

  eachRuntime("times out when the runtime accepts every call and answers none", async (runtime) => {
    const node = await start({ runtime });
    await node.check(["pkill", "-STOP", "-x", "containerd"]);

    const { code, stdout } = await boot(node, "--after", "--deadline", "2s");

    expect(code).toBe(0);
    expect(stdout).toContain("the deadline came before healing was done");
    expect(bootReport(node).outcome).toBe("failed");
  });
});

describe("boot --repair", () => {
  eachRuntime("makes a runtime start that fails because of two records of one name", async (runtime) => {
    const node = await start({ runtime });
    const pods = await runPods(node, 3);
    const [twin] = pods;
    if (twin === undefined) throw new Error("no pod was made");
    await duplicateRecord(node, twin);
    const images = await node.check(["ctr", "-n", "k8s.io", "images", "ls", "-q"]);
    await node.powerCut();
    await node.powerOn({ runtime: false });

    const asked = await boot(node, ...CONFIG, "--repair");
    const repaired = await boot(node, ...CONFIG, "--repair", "--yes");
    const again = await boot(node, ...CONFIG, "--repair", "--yes");

    expect(asked.code).toBe(3);
    expect(repaired.stdout).toContain("1 records removed");
    expect(repaired.code).toBe(0);
    expect(again.stdout).toContain("Nothing to repair");
    await node.startRuntime();
    const listed = await node.cri.listPodSandbox(undefined, CALL);
    expect(listed.map(({ metadata }) => metadata?.name).toSorted()).toEqual(pods.map(({ ref }) => ref.name).toSorted());
    expect(await node.check(["ctr", "-n", "k8s.io", "images", "ls", "-q"])).toBe(images);
  });
});

describe("install, boot, uninstall", () => {
  test("leaves no trace", async () => {
    const node = await start({ runtime: "1.6" });
    // The lab's disk has an empty state directory from the start; a purge removes that, too.
    const before = (await filesOf(node)).filter((path) => path !== "/var/lib/unghost");
    await runPods(node, 2);

    const installed = await node.exec([
      UNGHOST,
      "install",
      "--distribution",
      "containerd",
      "--bin-dir",
      "/opt/bin",
      "--yes",
    ]);
    await node.powerCut();
    await node.powerOn({ runtime: false });
    const hook = ["/opt/bin/unghost", "boot", "--no-kube", ...CONFIG];
    const healed = await node.exec(hook, { timeoutMs: HANG_GUARD_MS });
    const removed = await node.exec(["/opt/bin/unghost", "uninstall", "--purge", "--force", "--yes"]);

    expect(installed).toMatchObject({ code: 0 });
    expect(healed.stdout).toContain("2 healed");
    expect(removed).toMatchObject({ code: 0 });
    expect(await filesOf(node)).toEqual(before);
  });
});

/** All except for the files of containerd and CNI. */
async function filesOf(node: LabNode): Promise<readonly string[]> {
  const { stdout } = await node.exec(["find", "/etc", "/opt", "/var/lib", "/run/unghost"]);
  return stdout
    .split("\n")
    .filter((path) => !/^\/var\/lib\/(?:cni|containerd)\//.test(path))
    .toSorted();
}

describe("boot with files that users other than root may change", () => {
  test.each([
    ["the configuration", "chown 1001:127 /etc/containerd", "chown root: /etc/containerd"],
    ["the records", "chmod o+w /var/lib/containerd", "chmod go-w /var/lib/containerd"],
  ])("starts no containerd with %s of another user, and names the remedy", async (_what, spoil, remedy) => {
    const node = await start();
    await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn({ runtime: false });
    await node.check(["sh", "-c", spoil]);

    const refused = await boot(node, ...CONFIG);
    await node.check(["sh", "-c", remedy]);
    const healed = await boot(node, ...CONFIG);

    expect([refused.code, healed.code]).toEqual([0, 0]);
    expect(refused.stdout).toContain(remedy);
    expect(healed.stdout).toContain("1 healed");
  });
});

test("a boot that could not read the processes does not claim that no ghosts are left", async () => {
  const { root, where } = await simulatedNode();
  // As a /proc that hides the processes of other users.
  rmSync(`${root}/proc/1`, { recursive: true });

  const ran = await unghost([
    "boot",
    "--after",
    "--strict",
    "--no-kube",
    "--timeout",
    "1s",
    "--deadline",
    "20s",
    ...where,
  ]);

  expect(ran.stdout).toMatch(/^unghost boot: failed, 0 healed in .*: whether ghosts are left is not known: .*\/proc/);
  expect(ran.code).toBe(2);
});
