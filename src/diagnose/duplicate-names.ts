import type { MetadataFile } from "../snapshot/metadata-file.ts";
import type { StoredContainer } from "../snapshot/metadata-records.ts";

/** Records that will ask for one and the same name when the runtime starts. */
export interface DuplicateName {
  readonly name: string;
  readonly records: readonly StoredContainer[];
}

/**
 * Sandbox names that several records claim. Only container records count: a sandbox that is known from the 2.x sandbox
 * store alone is read back without reserving its name, and containerd 2.3 starts with such a namesake.
 */
export function duplicateSandboxNames(records: readonly StoredContainer[]): readonly DuplicateName[] {
  return duplicates(records, ({ sandbox }) => sandbox?.name);
}

/**
 * Container names that several records claim. containerd keeps the state of a container in a directory of its own; a
 * record without one cannot be loaded and claims nothing.
 */
export function duplicateContainerNames({
  records,
  containerDirs,
}: Pick<MetadataFile, "records" | "containerDirs">): readonly DuplicateName[] {
  return duplicates(records, ({ id, container }) => (containerDirs?.has(id) === false ? undefined : container?.name));
}

function duplicates(
  records: readonly StoredContainer[],
  nameOf: (record: StoredContainer) => string | undefined,
): readonly DuplicateName[] {
  return [...Map.groupBy(records, nameOf)].flatMap(([name, group]) =>
    name === undefined || group.length < 2 ? [] : [{ name, records: group }],
  );
}
