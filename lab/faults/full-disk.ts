import type { LabNode } from "../node.ts";

const FILLER = "/var/lab-filler";

/** Including root's reserve: in the end not even one block is left. */
const FILL_SCRIPT = `
mkdir -p ${FILLER}
n="$(ls ${FILLER} | wc -l)"
for size in 256M 16M 1M 64K 4K; do
  while fallocate -l "$size" "${FILLER}/$n" 2>/dev/null; do n=$((n + 1)); done
  rm -f "${FILLER}/$n"
done
`;

/** Fills the node's disk, which has to be a separate file system: `disk: "ext4"`. Idempotent. */
export async function fillDisk(node: LabNode): Promise<void> {
  if ((await node.check(["stat", "-f", "-c", "%T", "/var"])).trim() !== "ext2/ext3")
    throw new Error("the node's disk is a directory of the machine's: only one of its own may be filled");
  await node.check(["sh", "-c", FILL_SCRIPT]);
}

export async function freeDisk(node: LabNode): Promise<void> {
  await node.check(["rm", "-rf", FILLER]);
}
