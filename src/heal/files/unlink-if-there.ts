import { unlink } from "node:fs/promises";
import { errorCode } from "../../host/system-error.ts";

export async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
}
