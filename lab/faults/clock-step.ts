import { readFile, writeFile } from "node:fs/promises";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

const METADATA_FILE = "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db";
const CALL = { timeoutMs: 30_000 };
const NANOSECONDS = 1_000_000_000n;
/** Seconds from the year 1, where Go counts from, to 1970. */
const GO_EPOCH_OFFSET = 62_135_596_800n;
/** The clock of a machine without an RTC battery after a boot. */
const STEPPED_BACK_TO = 60n * NANOSECONDS;

/**
 * Makes a sandbox as if the clock had been near 1970 at its creation. The wall clock cannot be set for one node alone,
 * so the time is written into containerd's metadata while containerd is down. Restarts the runtime.
 */
export async function clockStep(node: LabNode, pod: LabPod, createdAt = STEPPED_BACK_TO): Promise<Injected> {
  await node.restartRuntime();
  const listed = await node.cri.listPodSandbox({ id: pod.sandboxId }, CALL);
  const before = listed[0]?.createdAt;
  if (before === undefined) throw new Error(`the sandbox ${pod.sandboxId} is not listed`);
  await node.stopRuntime();
  await overwrite(node.path(METADATA_FILE), goTime(before), goTime(createdAt));
  await node.startRuntime();
  const did = `set the creation of attempt ${pod.ref.attempt} of ${pod.ref.namespace}/${pod.ref.name} back to ${createdAt} ns`;
  return { fault: "clock-step", did, sandboxId: pod.sandboxId };
}

/** The file's pages have no checksum over values, and the new value has the same length. */
async function overwrite(path: string, from: Buffer, to: Buffer): Promise<void> {
  const bytes = await readFile(path);
  let found = 0;
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + to.length)) {
    to.copy(bytes, at);
    found++;
  }
  if (found === 0) throw new Error(`containerd's metadata does not hold the creation time ${from.toString("hex")}`);
  await writeFile(path, bytes);
}

/** Go's binary time format: version 1, seconds, nanoseconds, and -1 for UTC. */
function goTime(nanoseconds: bigint): Buffer {
  const bytes = Buffer.alloc(15);
  bytes.writeUInt8(1, 0);
  bytes.writeBigInt64BE(nanoseconds / NANOSECONDS + GO_EPOCH_OFFSET, 1);
  bytes.writeInt32BE(Number(nanoseconds % NANOSECONDS), 9);
  bytes.writeInt16BE(-1, 13);
  return bytes;
}
