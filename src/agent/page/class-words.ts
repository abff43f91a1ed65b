import type { ClassWords } from "../http/state-json.ts";
import { live } from "./live.ts";

/** The agent sends the words for what it speaks of. */
export function classWords(classId: string): ClassWords {
  return live().state?.classWords[classId] ?? { code: "", title: classId, explanation: "" };
}
