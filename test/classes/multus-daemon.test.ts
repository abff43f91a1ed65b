import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { read } from "../../src/host/source.ts";
import type { MultusDaemon } from "../../src/node/types/cni.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { DEFAULT_CAP } from "../../src/plan/policy.ts";
import { named } from "../support/diagnosed.ts";
import { klog } from "../support/log-lines.ts";
import {
  containerOf,
  delErrorLine,
  idOf,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

const socket = "/run/multus/multus.sock";
const ID = `multus-daemon-down-or-wedged/${socket}`;
const POD = { namespace: "default", name: "web", uid: undefined };
const process = { pid: 143, startedSecondsAfterBoot: 20, isStopped: false };
const shim = (ageSeconds: number) => ({
  ...pluginFor("a", "ADD", ageSeconds),
  command: "/opt/cni/bin/multus-shim",
  pod: POD,
});

function diagnosed(daemon: Omit<MultusDaemon, "socket">, shimAge?: number) {
  const plugins = shimAge === undefined ? [] : [shim(shimAge)];
  return diagnose(snapshotOf({ conf: THICK_MULTUS, plugins }, { multusDaemon: { socket, ...daemon } }), PATIENT);
}

describe("multus-daemon-down-or-wedged", () => {
  test.each<readonly [string, Omit<MultusDaemon, "socket">, RegExp]>([
    ["down", { state: "dead" }, /^See why the daemon does not run/],
    ["wedged", { state: "silent", process: { ...process, isStopped: true } }, /^Restart the daemon's container/],
    ["starved", { state: "answers", process, cpu: { milliCpu: 100, throttledPercent: 80 } }, /CPU limit of 100m/],
  ])("has the manual steps for a daemon that is %s, and no others", (_, daemon, first) => {
    const [finding] = diagnosed(daemon, 60).findings;

    expect(finding?.treatment.steps[0]).toMatch(first);
    expect(finding?.treatment.steps.join(" ")).not.toMatch(/Where |<\w+>/);
  });

  test.each<readonly [string, Omit<MultusDaemon, "socket">, number | undefined, RegExp | undefined]>([
    ["it answers, and no call waits", { state: "answers", process }, undefined, undefined],
    ["it answers, and shims wait for a delegate", { state: "answers", process }, 60, undefined],
    ["it is silent, and no call waits", { state: "silent", process }, undefined, undefined],
    ["it has been silent for a moment", { state: "silent", process }, 3, undefined],
    ["it is silent while a shim waits", { state: "silent", process }, 30, /pid 143\) does not answer/],
    ["it is stopped", { state: "silent", process: { ...process, isStopped: true } }, undefined, /does not answer/],
    ["no process listens", { state: "dead" }, 30, /no process listens/],
    ["its socket is gone", { state: "missing" }, undefined, /no process listens/],
    [
      "its CPU limit throttles it most of the time",
      { state: "answers", process, cpu: { milliCpu: 100, throttledPercent: 80 } },
      30,
      /CPU limit of 100m/,
    ],
    [
      "its CPU limit hardly throttles it",
      { state: "answers", process, cpu: { milliCpu: 100, throttledPercent: 5 } },
      30,
      undefined,
    ],
  ])("%s", (_, daemon, shimAge, summary) => {
    const found = diagnosed(daemon, shimAge).findings.filter(({ id }) => id === ID);

    expect(found.map((finding) => finding.summary)).toEqual(
      summary === undefined ? [] : [expect.stringMatching(summary)],
    );
  });

  const throttled = { milliCpu: 100, throttledPercent: 80 };
  const del = (ageSeconds: number) => ({
    ...pluginFor("d", "DEL", ageSeconds, 501),
    command: "/opt/cni/bin/multus-shim",
  });
  const stopTimedOut = klog(
    20,
    `"StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${idOf("d")}"`,
  );

  test.each<readonly [string, NodeParts, MultusDaemon["state"], boolean]>([
    ["DELs take long, and ADDs do not", { plugins: [shim(20), del(100)] }, "answers", false],
    ["DELs take long, and it is slow to answer", { plugins: [del(100)] }, "silent", false],
    ["DELs time out", { plugins: [shim(20), del(20)], logLines: [stopTimedOut] }, "answers", true],
    ["an ADD is late", { plugins: [shim(40), del(100)] }, "silent", true],
  ])(
    "a daemon that is throttled by a burst of calls is a finding only once pods are late: %s",
    (_, parts, state, isFound) => {
      const multusDaemon: MultusDaemon = { socket, state, process, cpu: throttled };
      const sandboxes = [sandboxOf("d")];
      const { findings } = diagnose(snapshotOf({ conf: THICK_MULTUS, sandboxes, ...parts }, { multusDaemon }), PATIENT);

      expect(named({ findings }).includes(ID)).toBe(isFound);
    },
  );

  test("delegates that its CPU limit holds up are no evidence against the daemon that they call", () => {
    const delegates = ["a", "b"].map((digit, index) => ({
      ...pluginFor(digit, "ADD", 90, 600 + index),
      command: "/opt/cni/bin/kube-ovn",
    }));
    const shims = ["a", "b"].map((digit) => ({ ...pluginFor(digit, "ADD", 91), command: "/opt/cni/bin/multus-shim" }));
    const cniDaemons = read([{ socket: "/run/ovn.sock", plugins: ["kube-ovn"], state: "listening" } as const]);
    const found = (cpu: MultusDaemon["cpu"]) =>
      diagnose(
        snapshotOf(
          { conf: THICK_MULTUS, plugins: [...shims, ...delegates] },
          { cniDaemons, multusDaemon: { socket, state: "answers", process, cpu } },
        ),
        PATIENT,
      ).findings.map((finding) => finding.class);

    expect(found(throttled)).toEqual(["multus-daemon-down-or-wedged"]);
    expect(found({ milliCpu: 100, throttledPercent: 0 })).toEqual(["cni-daemon-socket-down"]);
  });

  test("lists the waiting pods, without separate findings for them", () => {
    const { findings } = diagnosed({ state: "silent", process }, 3600);

    expect(named({ findings })).toEqual([ID]);
    expect(findings[0]).toMatchObject({ treatment: { automatic: false }, cure: [] });
    expect(findings[0]?.blocks.join()).toBe("pod default/web");
  });

  const container = containerOf("d", { state: "running" });
  const inContainer = { state: "silent", process: { ...process, containerId: container.id } } as const;
  const restart = { kind: "restart-daemon", socket, containerId: container.id, sandboxId: idOf("d"), pid: 143 };

  test.each<readonly [string, Omit<MultusDaemon, "socket">, NodeParts, readonly object[]]>([
    ["a container of the runtime", inContainer, {}, [restart]],
    ["not proven to be in a container", { state: "silent", process }, {}, []],
    ["in a container that the runtime does not run", inContainer, { containers: [containerOf("d")] }, []],
    ["in a container of another runtime", inContainer, { containers: [] }, []],
    [
      "in a pod that is opted out",
      inContainer,
      { sandboxes: [sandboxOf("d", { state: "ready", labels: { "unghost.dev/ignore": "true" } })] },
      [],
    ],
    ["only slow", { ...inContainer, state: "answers", cpu: { milliCpu: 20, throttledPercent: 90 } }, {}, []],
  ])("a restart is planned only with consent, when the daemon is %s", (_, daemon, parts, steps) => {
    const node = {
      conf: THICK_MULTUS,
      plugins: [shim(30)],
      sandboxes: [sandboxOf("d", { state: "ready" })],
      containers: [container],
      ...parts,
    };
    const diagnosis = diagnose(snapshotOf(node, { multusDaemon: { socket, ...daemon } }), PATIENT);
    const plan = (consented: readonly string[]) =>
      planHealing(diagnosis, { ...PATIENT, consented: new Set(consented), allDead: false, cap: DEFAULT_CAP });

    expect(diagnosis.findings.map(({ cure }) => cure)).toMatchObject([steps]);
    expect(plan([]).actions).toEqual([]);
    expect(plan(["multus-daemon-down-or-wedged"]).actions.flatMap((action) => action.steps)).toMatchObject(steps);
  });

  const KILLED = "netplugin failed with no error message: signal: killed";

  test.each([
    ["kubelet's call timed out", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"],
    [
      "kubelet's timeout canceled the stream",
      "rpc error: code = DeadlineExceeded desc = stream terminated by RST_STREAM with error code: CANCEL",
    ],
    [
      "the runtime ended the shim",
      `rpc error: code = Unknown desc = failed to destroy network for sandbox "${idOf("b")}": plugin type="multus-shim" name="multus-cni-network" failed (delete): ${KILLED}`,
    ],
  ])("explains the sandboxes that kubelet fails to stop, also between two attempts, when %s", (_, error) => {
    const stopFailed = `"StopPodSandbox from runtime service failed" err=${JSON.stringify(error)} podSandboxID="${idOf("b")}"`;
    const deleted: NodeParts = {
      conf: THICK_MULTUS,
      sandboxes: [sandboxOf("b")],
      records: [recordOf("b")],
      results: [resultOf("b")],
      logLines: [delErrorLine("b", KILLED), klog(30, stopFailed)],
    };
    const wedged = { socket, state: "silent", process: { ...process, isStopped: true } } as const;
    const found = diagnose(snapshotOf(deleted, { multusDaemon: wedged }), PATIENT);

    expect([found.verdict, named(found), found.pending, found.kept]).toEqual(["ghosts", [ID], [], []]);
    expect(found.findings[0]?.blocks.join()).toBe("pod default/pod-b");
  });
});
