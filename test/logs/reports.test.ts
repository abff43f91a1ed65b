import { describe, expect, test } from "vitest";
import { namesHeldInLogs } from "../../src/evidence/locks.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { type RuntimeReport, reportIn } from "../../src/logs/reports.ts";
import { sandboxName } from "../../src/node/types/ids.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { diagnosed } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  type NodeParts,
  PATIENT,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const ID = idOf("a");
const NAME = sandboxName(sandboxOf("a").pod);
const LOCK = `failed to reserve sandbox name "${NAME}": name "${NAME}" is reserved for "${ID}"`;
const RPC = "rpc error: code = Unknown desc = ";
const KLOG = "E1116 03:22:07.101010     811";
const TIME = 'time="2026-11-16T03:22:07.1Z"';

/** As Go's %q writes it. */
function q(text: string): string {
  return JSON.stringify(text);
}

const metadata = "&PodSandboxMetadata{Name:pod-a,Uid:a,Namespace:default,Attempt:0,}";
const SYNC = `failed to "CreatePodSandbox" for "pod-a_default(a)" with CreatePodSandboxError: ${q(`Failed to create sandbox for pod "pod-a_default(a)": ${RPC}${LOCK}`)}`;

/** Lines that the runtime and kubelet write when a name is held. */
const GENUINE: readonly (readonly [string, string])[] = [
  ["containerd", `${TIME} level=error msg=${q(`RunPodSandbox for ${metadata} failed, error`)} error=${q(LOCK)}`],
  [
    "containerd 2",
    `${TIME} level=error msg=${q('RunPodSandbox for name:"pod-a" uid:"a" namespace:"default" failed, error')} error=${q(RPC + LOCK)}`,
  ],
  [
    "containerd in JSON",
    JSON.stringify({ error: LOCK, level: "error", msg: `RunPodSandbox for ${metadata} failed, error`, time: "t" }),
  ],
  ["kubelet's runtime client", `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(RPC + LOCK)}`],
  [
    "kubelet's manager",
    `${KLOG} kuberuntime_sandbox.go:72] "Failed to create sandbox for pod" err=${q(RPC + LOCK)} pod="default/pod-a"`,
  ],
  [
    "kubelet's pod worker",
    `${KLOG} pod_workers.go:1301] "Error syncing pod, skipping" err=${q(SYNC)} pod="default/pod-a" podUID="a"`,
  ],
  [
    "kubelet in JSON",
    JSON.stringify({ ts: 1, caller: "log.go:32", msg: "RunPodSandbox from runtime service failed", err: RPC + LOCK }),
  ],
];

const [, genuine] = GENUINE[3] ?? ["", ""];
const hook = `command 'sh -c x' exited with 1: ${RPC}${LOCK}`;

/** Lines that contain all of the above, but were written by another party. */
const FORGED: readonly (readonly [string, string])[] = [
  [
    "a lifecycle hook's output",
    `${KLOG} handlers.go:80] "Exec lifecycle hook failed" err=${q(hook)} message=${q(LOCK)}`,
  ],
  [
    "a hook's error that starts like an answer, under another message",
    `${KLOG} handlers.go:80] "Exec lifecycle hook failed" err=${q(RPC + LOCK)}`,
  ],
  ["a message field", `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" message=${q(RPC + LOCK)}`],
  [
    "an err= inside another field",
    `${KLOG} prober.go:1] "Probe failed" output=${q(`x" err=${q(RPC + LOCK)}`)} pod="default/pod-a"`,
  ],
  [
    "an err= inside a value that Go prints unquoted",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" config={x err=${q(RPC + LOCK)}}`,
  ],
  ["a whole line quoted in an error", `${KLOG} x.go:1] "Probe failed" err=${q(genuine)}`],
  ["a whole line quoted twice", `${KLOG} x.go:1] "Probe failed" err=${q(q(genuine))}`],
  ["a line of a text of several lines", `\t${genuine}`],
  ["a container's own log", `2026-11-16T03:22:07.1Z stderr F ${genuine}`],
  ["a syslog line of another program", `Nov 16 03:22:07 node app[7]: ${genuine}`],
  [
    "an error that quotes it after its own",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(`${RPC}failed to pull image "${LOCK}"`)}`,
  ],
  [
    "an error with more text after it",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(`${RPC}${LOCK}: exit status 1`)}`,
  ],
  [
    "an error that is not the runtime's answer",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(LOCK)}`,
  ],
  [
    "a container that failed to start, in a pod worker's error",
    `${KLOG} pod_workers.go:1301] "Error syncing pod, skipping" err=${q(`failed to "StartContainer" for "app" with RunContainerError: ${q(SYNC)}`)}`,
  ],
  [
    "one of several errors of a pod worker",
    `${KLOG} pod_workers.go:1301] "Error syncing pod, skipping" err=${q(`[failed to "KillContainer" for "app" with KillContainerError: "x", ${SYNC}]`)}`,
  ],
  [
    "the runtime's report of an exec",
    `${TIME} level=error msg=${q(`ExecSync for "${ID}" failed`)} error=${q(`failed to exec: ${LOCK}`)}`,
  ],
  [
    "the runtime's report of an exec, at its start",
    `${TIME} level=error msg=${q(`ExecSync for "${ID}" failed`)} error=${q(RPC + LOCK)}`,
  ],
  ["a message of the runtime that quotes it", `${TIME} level=error msg=${q(`x: ${LOCK}`)} error=${q("no")}`],
  ["a line without its time", `level=error msg=${q(`RunPodSandbox for ${metadata} failed, error`)} error=${q(LOCK)}`],
  ["a field that is closed too early", `${TIME} level=error msg="RunPodSandbox for x" failed, error" error=${q(LOCK)}`],
  ["a second error field", `${TIME} level=error msg="RunPodSandbox for x failed, error" error="no" error=${q(LOCK)}`],
  [
    "two names that differ",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(RPC + LOCK.replace(NAME, "other_default_o_0"))}`,
  ],
  [
    "a name that the holder does not have",
    `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(RPC + LOCK.replaceAll(NAME, "other_default_o_0"))}`,
  ],
  ["the bare answer", `${RPC}${LOCK}`],
];

/** A finished pod that Kubernetes keeps on purpose: only a proven lock makes it a finding. */
const kept: NodeParts = {
  sandboxes: [sandboxOf("a")],
  containers: [containerOf("a", { exit: FINISHED })],
  records: [recordOf("a")],
  results: [resultOf("a", "empty")],
  kubeletStarted: 60,
  pods: ["a"],
};

function stepsWith(line: string): readonly string[] {
  const policy = { ...PATIENT, allDead: false, cap: 10 };
  const plan = planHealing(diagnosed({ ...kept, logLines: [line] }, policy), policy);
  return plan.actions.flatMap(({ steps }) => steps.map(({ kind }) => kind));
}

describe("a held name", () => {
  test.each(GENUINE)("is accepted as %s reports it", (_, line) => {
    const view = viewOf(snapshotOf({ ...kept, logLines: [line] }), AT_ONCE);

    expect([...namesHeldInLogs(view)]).toEqual([[ID, NAME]]);
    expect(stepsWith(line)).toContain("remove-sandbox");
  });

  test.each(FORGED)("is not accepted as %s", (_, line) => {
    const view = viewOf(snapshotOf({ ...kept, logLines: [line] }), AT_ONCE);

    expect([...namesHeldInLogs(view)]).toEqual([]);
    expect(stepsWith(line)).not.toContain("remove-sandbox");
  });

  test("is not accepted for a sandbox of unknown name", () => {
    const view = viewOf(snapshotOf({ logLines: [genuine] }), AT_ONCE);

    expect([...namesHeldInLogs(view)]).toEqual([]);
  });
});

function read(text: string): RuntimeReport | undefined {
  return reportIn({ place: "journal", text });
}

describe("a report about a sandbox", () => {
  const DEL = `failed to destroy network for sandbox "${ID}": plugin type="x" failed (delete): no`;
  const CRIO = `failed to destroy network for pod sandbox k8s_web_shop_u_0(${ID}): error removing pod shop_web: no`;

  test.each<readonly [string, string, string]>([
    ["stop-sandbox", "containerd's stop", delErrorLine("a", "no")],
    [
      "remove-sandbox",
      "containerd's removal",
      `${TIME} level=error msg=${q(`RemovePodSandbox for "${ID}" failed`)} error="no"`,
    ],
    [
      "stop-sandbox",
      "its rollback",
      `${TIME} level=error msg=${q(`Failed to destroy network for sandbox "${ID}"`)} error="no"`,
    ],
    [
      "stop-sandbox",
      "an exit that it could not handle",
      `${TIME} level=error msg=${q(`failed to handle sandbox TaskExit event &TaskExit{ContainerID:${ID},ID:${ID},Pid:7,}`)} error="failed to stop"`,
    ],
    [
      "create-sandbox",
      "its creation",
      `${TIME} level=error msg="RunPodSandbox for x failed, error" error=${q(DEL.replace("destroy", "setup"))}`,
    ],
    ["stop-sandbox", "CRI-O's clean-up", `${TIME} level=error msg=${q(`Error stopping network on cleanup: ${CRIO}`)}`],
    [
      "stop-sandbox",
      "kubelet's client",
      `${KLOG} log.go:32] "StopPodSandbox from runtime service failed" err=${q(RPC + DEL)} podSandboxID="${ID}"`,
    ],
    [
      "stop-sandbox",
      "kubelet beside CRI-O",
      `${KLOG} log.go:32] "StopPodSandbox from runtime service failed" err=${q(RPC + CRIO)}`,
    ],
    [
      "stop-sandbox",
      "its pod worker",
      `${KLOG} pod_workers.go:9] "Error syncing pod, skipping" err=${q(`failed to "KillPodSandbox" for "a" with KillPodSandboxError: ${q(RPC + DEL)}`)}`,
    ],
  ])("contains that %s failed, in the format of %s", (operation, _, line) => {
    expect(read(line)).toMatchObject({ kind: "failed", operation, sandboxId: ID });
  });

  test("reports that its network is released", () => {
    expect(read(`${TIME} level=info msg=${q(`TearDown network for sandbox "${ID}" successfully`)}`)).toMatchObject({
      kind: "network-released",
      sandboxId: ID,
    });
  });

  test.each([
    ["a probe that quotes one", `${KLOG} p.go:1] "Probe failed" err=${q(delErrorLine("a", "no"))}`],
    ["an exec that quotes one", `${TIME} level=error msg="ExecSync for \\"x\\" failed" error=${q(DEL)}`],
    [
      "an id that is only in the plugin's text",
      `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${q(`${RPC}x: ${DEL}`)}`,
    ],
    ["success without a level", `${TIME} level=error msg=${q(`x TearDown network for sandbox "${ID}" successfully`)}`],
    ["a line with a prototype key", `${KLOG} log.go:32] "constructor" err=${q(RPC + DEL)}`],
  ])("is not parsed from %s", (_, line) => {
    expect(read(line)?.kind === "failed" ? read(line) : {}).not.toHaveProperty("sandboxId");
  });
});
