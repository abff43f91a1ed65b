import { link, unlink } from "node:fs/promises";
import { errorCode } from "../../host/system-error.ts";

/**
 * Puts a file under a name that must be free; false when it is not. link() refuses an existing name, where rename()
 * would silently replace what somebody else just put there.
 */
export async function giveBack(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
  } catch (thrown) {
    if (errorCode(thrown) === "EEXIST") return false;
    throw thrown;
  }
  await unlink(from);
  return true;
}
