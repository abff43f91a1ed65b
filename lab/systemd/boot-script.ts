import { BIND_READ_ONLY, MOUNT_KERNEL_FILE_SYSTEMS, MOUNT_TERMINALS } from "../boot-script.ts";

/**
 * The first program in the new namespaces of a node with systemd: mounts an overlay over the shared root file system
 * and the kernel's file systems, then executes systemd. An empty file replaces the machine's kernel log, which journald
 * would read as the node's and systemd would write to: kubelet does not start without one.
 */
export const SYSTEMD_BOOT_SCRIPT = `
set -eu
exec </dev/null
read -r host_pid rest </proc/self/stat
bb="$LAB_BUSYBOX"
root="$LAB_DIR/root"

${BIND_READ_ONLY}
"$bb" mount --make-rprivate /
"$bb" mkdir -p "$root" "$LAB_DIR/work"
"$bb" mount -t overlay -o "lowerdir=$LAB_ROOTFS,upperdir=$LAB_DIR/disk,workdir=$LAB_DIR/work" overlay "$root"
cd "$root"

"$bb" mount -t tmpfs -o mode=755 run run
"$bb" mount -t tmpfs -o mode=1777 tmp tmp
"$bb" mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty; do
  : >"dev/$name"
  "$bb" mount --bind "/dev/$name" "dev/$name"
done
: >dev/kmsg
"$bb" mount --bind /dev/null dev/kmsg
${MOUNT_TERMINALS}
${MOUNT_KERNEL_FILE_SYSTEMS}

printf '%s\\n' "$LAB_VISIBLE" | while read -r dir; do
  [ -z "$dir" ] || bind_read_only "$dir"
done

"$bb" mkdir -p .machine
"$bb" pivot_root . .machine
cd /
/bin/umount -l /.machine
/bin/hostname "$LAB_HOSTNAME" 2>/dev/null || echo "$LAB_HOSTNAME" >/proc/sys/kernel/hostname
echo "up $host_pid"
exec /usr/bin/env -i container=unghost-lab PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
  /lib/systemd/systemd --system --log-target=journal --show-status=no >/dev/null 2>&1
`;
