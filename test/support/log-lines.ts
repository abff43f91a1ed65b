import { ago } from "./snapshot-builder.ts";

/** A line in kubelet's format: local time, without the year. */
export function klog(secondsAgo: number, text: string): string {
  const at = ago(secondsAgo);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `E${day} ${time}.000000    4711 kuberuntime_sandbox.go:72] ${text}`;
}

export function containerdLine(secondsAgo: number, level: "info" | "error", message: string): string {
  return `time="${ago(secondsAgo).toISOString()}" level=${level} msg=${JSON.stringify(message)}`;
}
