import type { Source } from "../snapshot/source.ts";
import type { ProcessFacts } from "../snapshot/types.ts";

/** Whether a process shows that a record's sandbox or container lives; `unproven` where processes could not be read. */
export type RecordLife =
  | { readonly state: "alive"; readonly because: string }
  | { readonly state: "dead" }
  | { readonly state: "unproven" };

export function lifeOfRecord(id: string, processes: Source<ProcessFacts>): RecordLife {
  if (processes.status !== "read") return { state: "unproven" };
  const { shims, byContainer } = processes.value;
  const shim = shims.find((one) => one.id === id);
  if (shim !== undefined) return { state: "alive", because: `its shim is alive (pid ${shim.pid})` };
  const pid = byContainer.get(id)?.[0];
  return pid === undefined ? { state: "dead" } : { state: "alive", because: `process ${pid} runs in its cgroup` };
}

export function lifeInWords(life: RecordLife): string {
  switch (life.state) {
    case "alive":
      return life.because;
    case "dead":
      return "no shim and no process carries its id";
    case "unproven":
      return "whether it lives is not known: the process table could not be read";
  }
}
