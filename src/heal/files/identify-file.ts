import { basename, dirname } from "node:path";
import { describeError } from "../../host/system-error.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";
import { type FileIdentity, kindInWords, lookAt } from "./file-identity.ts";
import { holdDirectory } from "./held-directory.ts";
import { canonicalPath } from "./host-path.ts";

/** Identify first, then prove, then quarantine: a file that changes in between is no longer the one identified. */
export async function identifyFile(hostRoot: string, path: string): Promise<Outcome<FileIdentity>> {
  const canonical = canonicalPath(hostRoot, path);
  try {
    const parent = holdDirectory(hostRoot, dirname(canonical));
    if (!parent.ok) return parent;
    if (parent.value === undefined) return refuse(`${path} is no longer there.`, "Scan again.");
    try {
      const found = lookAt(parent.value.entry(basename(canonical)));
      if (found.what === "file") return ok(found.identity);
      if (found.what === "nothing") return refuse(`${path} is no longer there.`, "Scan again.");
      return refuse(`${path} is ${kindInWords(found.kind)}, not a regular file.`, "Look at it by hand.");
    } finally {
      parent.value.close();
    }
  } catch (thrown) {
    return refuse(`${path} could not be looked at: ${describeError(thrown)}.`, "Scan again.");
  }
}
