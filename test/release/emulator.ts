import { join } from "node:path";
import { cached } from "../../lab/cache.ts";
import { unpackDebianPackages } from "../../lab/debian-packages.ts";

/** With these switches set, a daemon does not execute itself again, which an emulator does not support. */
export const WITHOUT_RESTART = { BUN_JSC_useJIT: "0", UV_THREADPOOL_SIZE: "12" };

/** The static emulator of arm64, and a directory with glibc for it. */
export async function emulatorFiles(): Promise<{ readonly emulator: string; readonly glibc: string }> {
  const root = await cached("qemu-arm64", (dir) =>
    unpackDebianPackages(["qemu-user-static", "libc6-arm64-cross"], dir),
  );
  return { emulator: join(root, "usr/bin/qemu-aarch64-static"), glibc: join(root, "usr/aarch64-linux-gnu") };
}
