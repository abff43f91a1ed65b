import { classById } from "../classes/index.ts";

/** What a class is called by people. */
export function titleOf(classId: string): string {
  return classById(classId)?.title ?? "";
}
