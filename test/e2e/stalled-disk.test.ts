import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { run, runOrThrow } from "../../lab/command.ts";
import { whyNoRecordedDisk } from "../../lab/loop-disk.ts";
import { findMkfs } from "../../lab/mkfs.ts";
import { RECORDER } from "../../lab/recorded-disk.ts";
import { tempDir } from "../support/temp-dir.ts";
import { problemsOf, reportOf, simulatedNode, UNGHOST } from "./unghost.ts";

const REASON = whyNoRecordedDisk();
const IMAGE_BYTES = 64 * 1024 ** 2;
const GUARD_MS = 60_000;

/**
 * A disk whose server stops while a process waits for a block of it; then the command. All of it ends with the process
 * namespace, mounts and loop device included.
 */
const ON_STALLED_DISK = `
set -e
dir=$1 point=$2; shift 2
mkdir "$dir/served"
python3 -c "$RECORDER" "$dir/served" "$dir/disk.img" "$dir/writes" >"$dir/ready" &
server=$!
until [ -s "$dir/ready" ]; do sleep 0.05; done
mount -o loop "$dir/served/disk.img" "$point"
mkdir "$point/results" "$point/networks"
for number in 1 2 3; do echo '{}' >"$point/results/file-$number"; done
umount "$point"
mount -o loop "$dir/served/disk.img" "$point"
disk=$(stat -c %Hd:%Ld "$point")
kill -STOP $server
cat "$point/results/file-1" >/dev/null &
until [ "$(awk '{ print $9 }' "/sys/dev/block/$disk/stat")" -gt 0 ]; do sleep 0.05; done
"$@"
`;

describe.skipIf(REASON !== undefined)(
  `a local disk that stops answering${REASON ? `: skipped, ${REASON}` : ""}`,
  () => {
    test("scan ends and names it", async () => {
      const { root, where } = await simulatedNode();
      const dir = tempDir();
      onTestFinished(() => dir.remove());
      writeFileSync(dir.join("disk.img"), "");
      truncateSync(dir.join("disk.img"), IMAGE_BYTES);
      const { command, env } = await findMkfs("ext4");
      await runOrThrow([...command, dir.join("disk.img")], { env });
      mkdirSync(`${root}/srv/cni`, { recursive: true });
      const onStalled = (args: readonly string[]) =>
        run(
          ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ON_STALLED_DISK, "sh"].concat(
            dir.path,
            `${root}/srv/cni`,
            UNGHOST,
            ...args,
          ),
          { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", RECORDER }, timeoutMs: GUARD_MS },
        );

      const scan = await onStalled(["scan", "-o", "json", "--timeout", "2s", "--cni-cache-dir", "/srv/cni", ...where]);

      expect([scan.timedOut, scan.code]).toEqual([false, 2]);
      expect(problemsOf(reportOf(scan)).join("\n")).toContain(`mounted at ${root}/srv/cni (ext4) does not answer`);
    });
  },
);
