import { describeKeeper, isSerious, type KeeperState } from "../keeper/keeper-state.ts";
import { absentCheck, type Check, missing, ok } from "./doctor-report.ts";

const ID = "durable CNI files";

/** A node without a keeper is ordinary: it only heals more after a power cut. */
export function checkCniFiles(keeper: KeeperState | undefined): Check {
  const detail = describeKeeper(keeper);
  if (keeper === undefined) return absentCheck(ID, detail);
  if (!keeper.problems.some(isSerious)) return ok(ID, detail);
  return missing(ID, detail, "CNI files that a power cut does not empty", "See docs/durability.md.");
}
