import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { read } from "../../src/host/source.ts";
import type { CniDaemon } from "../../src/node/types/cni.ts";
import type { PluginProcess } from "../../src/node/types/runtime.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import { klog } from "../support/log-lines.ts";
import {
  ago,
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

const HUNG = ["a", "b", "c"] as const;

function hangingStatus(parts: NodeParts, confChangedAt = ago(30)): Snapshot {
  const snapshot = snapshotOf(parts);
  const facts = snapshot.cri.status === "read" ? snapshot.cri.value : undefined;
  if (facts === undefined) throw new Error("the builder reads CRI");
  return { ...snapshot, cri: read({ ...facts, statusHangsMs: 2000 }), cni: { ...snapshot.cni, confChangedAt } };
}

function hungAdds(ageSeconds: number, command = "/opt/cni/bin/bridge"): NodeParts {
  return {
    records: HUNG.map((digit) => ({ ...recordOf(digit, { hasCniResult: false }), createdAt: ago(ageSeconds) })),
    plugins: HUNG.map(
      (digit, index): PluginProcess => ({ ...pluginFor(digit, "ADD", ageSeconds, 500 + index), command }),
    ),
  };
}

describe("cni-lock-wedge", () => {
  test("is one finding for all plugins that hold the lock while Status hangs", () => {
    const { verdict, findings, podCreation } = diagnose(hangingStatus(hungAdds(90)), PATIENT);

    expect([verdict, findings.map(({ class: id }) => id), podCreation.able]).toEqual([
      "ghosts",
      ["cni-lock-wedge"],
      "no",
    ]);
    expect(findings[0]).toMatchObject({
      summary: expect.stringContaining("the CNI configuration was reloaded meanwhile"),
      cure: [{ kind: "free-cni-lock", holders: HUNG.map((digit) => ({ sandboxId: idOf(digit) })) }],
      treatment: { automatic: true },
    });
    expect(findings[0]?.blocks.join()).toContain("default/pod-a, default/pod-b, default/pod-c");
  });

  test("is pending for the first minute, and the node is not healthy", () => {
    const { verdict, pending, findings } = diagnose(hangingStatus(hungAdds(20)), PATIENT);

    expect([verdict, findings]).toEqual(["unknown", []]);
    expect(pending[0]).toMatchObject({
      reason: "runtime-status-hanging",
      waitsFor: { kind: "lock", holder: { pid: 500 } },
      becomesFindingAt: new Date(ago(20).getTime() + 60_000),
    });
  });

  test("is not reported without a running plugin: the verdict is unknown", () => {
    const { verdict, findings, podCreation } = diagnose(hangingStatus({}), PATIENT);

    expect([verdict, findings, podCreation.able]).toEqual(["unknown", [], "no"]);
  });

  test("is not reported while Status answers", () => {
    expect(named(diagnosed(hungAdds(90), PATIENT))).toEqual([]);
  });
});

describe("cni-daemon-socket-down", () => {
  const SOCKET = "/run/openvswitch/kube-ovn-daemon.sock";

  function withDaemon(parts: NodeParts, daemon: Partial<CniDaemon>): Snapshot {
    const base: CniDaemon = { socket: SOCKET, plugins: ["kube-ovn"], state: "listening", since: ago(3000) };
    return snapshotOf(parts, { cniDaemons: read([{ ...base, ...daemon }]) });
  }

  const waiting = hungAdds(90, "/opt/cni/bin/kube-ovn");
  const listener = { pid: 42, startedSecondsAfterBoot: 100 };

  test("is one finding for all calls that wait for a daemon that does not answer, and none of them is ended", () => {
    const { findings } = diagnose(withDaemon(waiting, { listener }), { ...PATIENT, inflightGraceMs: 60_000 });

    expect(findings).toMatchObject([
      {
        class: "cni-daemon-socket-down",
        subject: { type: "node", path: SOCKET },
        blocks: ["3 pods: default/pod-a, default/pod-b, default/pod-c"],
        cure: [],
        treatment: { automatic: false },
      },
    ]);
    expect(findings[0]?.evidence[0]?.fact).toBe(`pid 42 has listened on ${SOCKET} for 50m`);
  });

  test("explains a sandbox that kubelet fails to stop, also between two attempts", () => {
    const stopTimedOut = `"StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${idOf("d")}"`;
    const deleted: NodeParts = {
      ...waiting,
      sandboxes: [sandboxOf("d")],
      records: [...(waiting.records ?? []), recordOf("d")],
      results: [resultOf("d")],
      logLines: [delErrorLine("d", "netplugin failed with no error message: signal: killed"), klog(30, stopTimedOut)],
    };
    const found = diagnose(withDaemon(deleted, { listener }), PATIENT);

    expect(found.findings.map(({ class: id }) => id)).toEqual(["cni-daemon-socket-down"]);
    expect([...found.pending, ...found.kept].filter(({ sandboxId }) => sandboxId === idOf("d"))).toEqual([]);
  });

  test("is found immediately when no process listens and a call waits", () => {
    const { findings } = diagnose(withDaemon(hungAdds(10, "/opt/cni/bin/kube-ovn"), { state: "dead" }), PATIENT);

    expect(findings.map(({ class: id }) => id)).toEqual(["cni-daemon-socket-down"]);
  });

  test.each<readonly [string, NodeParts, Partial<CniDaemon>]>([
    [
      "calls that started before the daemon did",
      waiting,
      { listener: { pid: 42, startedSecondsAfterBoot: UPTIME_SECONDS - 5 } },
    ],
    ["calls of another plugin", hungAdds(90), { listener }],
    ["a single call", { ...waiting, plugins: waiting.plugins?.slice(0, 1) ?? [] }, { listener }],
    ["calls that have just started", hungAdds(10, "/opt/cni/bin/kube-ovn"), { listener }],
    ["a daemon that is down and not needed", {}, { state: "missing" }],
  ])("is not reported for %s", (_, parts, daemon) => {
    expect(diagnose(withDaemon(parts, daemon), PATIENT).findings).toEqual([]);
  });
});

describe("a finished pod whose sandbox kubelet cannot stop", () => {
  const stop = (): string => {
    const at = ago(30);
    const two = (value: number) => String(value).padStart(2, "0");
    const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
    const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    return `E${day} ${time}.000000    4711 log.go:32] "StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${idOf("a")}"`;
  };
  const finished: NodeParts = {
    sandboxes: [sandboxOf("a")],
    containers: [containerOf("a", { exit: FINISHED })],
    records: [recordOf("a")],
    pods: ["a"],
    kubeletStarted: 5,
  };

  test("is kept for its logs while no error is reported", () => {
    const { verdict, kept } = diagnosed(finished, PATIENT);

    expect([verdict, kept.map(({ reason }) => reason.code)]).toEqual(["healthy", ["containers-finished"]]);
  });

  test("is blocked and not kept as finished", () => {
    const { verdict, kept, pending } = diagnosed({ ...finished, logLines: [stop()] }, PATIENT);

    expect(verdict).not.toBe("healthy");
    expect(
      kept.filter(({ reason }) => reason.code === "containers-finished" || reason.code === "pod-finished"),
    ).toEqual([]);
    expect(verdict === "ghosts" || pending.some(({ reason }) => reason === "removal-failing")).toBe(true);
  });
});
