import { absent, type Source } from "../host/source.ts";
import type { StoredRecords } from "../node/types/offline.ts";
import type { ProcessFacts } from "../node/types/runtime.ts";
import { type Liveness, livenessOf, nodeSigns } from "./liveness.ts";

/** Liveness of a stored sandbox or container while its runtime does not run: then only processes can show it. */
export function livenessOfStored(
  id: string,
  { records }: Pick<StoredRecords, "records">,
  processes: Source<ProcessFacts>,
): Liveness {
  const containerIds = records.filter(({ container }) => container?.sandboxId === id).map((record) => record.id);
  return livenessOf({ id, cri: absent(DOWN), containerIds }, nodeSigns(absent(DOWN), processes));
}

const DOWN = "the runtime does not run";
