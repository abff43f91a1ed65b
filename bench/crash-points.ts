/**
 * `make crash-points`: the node's disk after every single write of a heal, an undo and a boot hook, on three file
 * systems. Arguments: number of pods, check every nth point, file systems (comma-separated). Exits 1 on a failure.
 */
import { resolve } from "node:path";
import { crashPoints } from "../lab/crash-points.ts";
import { type RecordedFileSystem, whyNoRecordedDisk } from "../lab/loop-disk.ts";

const [pods = "16", every = "1", fileSystems = "ext4,xfs,btrfs"] = process.argv.slice(2);
const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

/** A node that boots takes as long as thirty checks. */
const BOOT_EVERY = 25;

const PROGRESS_EVERY = 100;

const why = whyNoRecordedDisk();
if (why !== undefined) {
  process.stderr.write(`crash-points cannot run on this machine: ${why}\n`);
  process.exit(77);
}
let total = 0;
for (const fileSystem of fileSystems.split(",") as RecordedFileSystem[]) {
  const onChecked = (checked: number, failures: number) => {
    if (checked % PROGRESS_EVERY === 0)
      process.stderr.write(`${fileSystem}: ${checked} so far, ${failures} failures\n`);
  };
  const options = { unghost, fileSystem, pods: Number(pods), every: Number(every), bootEvery: BOOT_EVERY, onChecked };
  const { points, checked, undone, booted, failures } = await crashPoints(options);
  total += checked;
  process.stdout.write(
    `${fileSystem}: ${checked} of ${points} crash points checked, ${undone} with an undo, ${booted} with a boot and a heal, ` +
      `${failures.length} failures\n`,
  );
  for (const failure of failures.slice(0, 20)) process.stdout.write(`  ${failure}\n`);
  if (failures.length > 0) process.exitCode = 1;
}
process.stdout.write(`${total} crash points\n`);
