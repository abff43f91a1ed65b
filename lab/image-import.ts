import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { ExecOptions } from "./node-exec.ts";
import { PAUSE_IMAGE, pauseImage } from "./pause-image.ts";
import { until } from "./poll.ts";
import { rawUnary } from "./raw-grpc.ts";
import type { RuntimeSetup } from "./runtime-setup.ts";

/** What the import needs of a node before it is returned. */
export interface ImportTarget {
  readonly socket: string;
  path(inNode: string): string;
  writeFile(inNode: string, content: Uint8Array): Promise<void>;
  check(command: readonly string[], options: ExecOptions): Promise<string>;
}

const ARCHIVE = "/var/tmp/pause.tar";
const IMPORT_MS = 60_000;

export async function importPauseImage(
  target: ImportTarget,
  busybox: string,
  { importImage }: Pick<RuntimeSetup, "importImage">,
): Promise<void> {
  await target.writeFile(ARCHIVE, pauseImage(await readFile(busybox)));
  await target.check(importImage(ARCHIVE), { timeoutMs: IMPORT_MS });
  rmSync(target.path(ARCHIVE));
  // containerd's CRI plugin is notified of the import by an event; an earlier pod would have its image pulled.
  await until("the runtime knows the lab's image", IMPORT_MS, async () => {
    const answer = await rawUnary(target.socket, "/runtime.v1.ImageService/ImageStatus", imageStatusRequest());
    return answer.length > 0 ? true : undefined;
  });
}

/** The name as first field of the image, which is the first field of the request; both shorter than 128 bytes. */
function imageStatusRequest(): Buffer {
  const name = Buffer.from(PAUSE_IMAGE);
  const image = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  return Buffer.concat([Buffer.from([0x0a, image.length]), image]);
}
