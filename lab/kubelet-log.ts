import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { PodRef } from "../src/node/types/ids.ts";
import type { LabNode } from "./node.ts";

export const KUBELET_LOG = "/var/log/kubelet.log";
const TIMED_OUT = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";

/** Kubelet's log line after a timeout of RunPodSandbox. */
export function logCreateTimeout(node: LabNode, ref: PodRef, at = new Date()): void {
  const pod = `${ref.name}_${ref.namespace}(${ref.uid})`;
  const error = `failed to "CreatePodSandbox" for "${pod}" with CreatePodSandboxError: ${JSON.stringify(`Failed to create sandbox for pod "${pod}": ${TIMED_OUT}`)}`;
  write(
    node,
    at,
    `"Error syncing pod, skipping" err=${JSON.stringify(error)} pod="${ref.namespace}/${ref.name}" podUID="${ref.uid}"`,
  );
}

/** Kubelet's log line after a timeout of StopPodSandbox. */
export function logStopTimeout(node: LabNode, sandboxId: string, at = new Date()): void {
  write(
    node,
    at,
    `"StopPodSandbox from runtime service failed" err=${JSON.stringify(TIMED_OUT)} podSandboxID="${sandboxId}"`,
  );
}

/** Kubelet's log line when the kernel refuses to remove a pod's cgroup. */
export function logCgroupBusy(node: LabNode, uid: string, path: string, at = new Date()): void {
  const error = `unable to destroy cgroup paths for cgroup [kubepods burstable pod${uid}] : rmdir ${path}: device or resource busy`;
  write(
    node,
    at,
    `"Failed to delete cgroup paths" err=${JSON.stringify(error)} cgroupName=["kubepods","burstable","pod${uid}"]`,
  );
}

function write(node: LabNode, at: Date, message: string): void {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const micros = String(at.getMilliseconds() * 1000).padStart(6, "0");
  const path = node.path(KUBELET_LOG);
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `E${day} ${time}.${micros}     811 pod_workers.go:1301] ${message}\n`);
}
