import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { checkoutDir } from "../cache.ts";

/** How unghost is run: the built executable, or its source if that cannot run. */
export interface Program {
  readonly command: readonly string[];
  /** As the story shows it. */
  readonly shown: string;
}

export function unghostProgram(): Program {
  const checkout = checkoutDir();
  if (checkout === undefined) throw new Error("the demo runs from a checkout of unghost");
  const built = process.env["UNGHOST_BIN"] ?? join(checkout, "dist/unghost");
  if (process.platform !== "linux")
    return { command: [process.execPath, join(checkout, "src/main.ts")], shown: "unghost" };
  if (!existsSync(built)) throw new Error(`${relative(checkout, built)} is not there yet: run make build`);
  return { command: [built], shown: relative(checkout, built) };
}
