/** A directory of the machine, at the same path in the node. */
export const BIND_READ_ONLY = `
bind_read_only() {
  "$bb" mkdir -p ".$1"
  "$bb" mount -o rbind "$1" ".$1"
  "$bb" mount -o remount,ro,bind "$1" ".$1"
}
`;

/** Below the node's own /dev. */
export const MOUNT_TERMINALS = `
"$bb" mkdir dev/pts dev/shm dev/mqueue
"$bb" mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
"$bb" mount -t tmpfs -o mode=1777 shm dev/shm
"$bb" mount -t mqueue mqueue dev/mqueue
"$bb" ln -s pts/ptmx dev/ptmx
"$bb" ln -s /proc/self/fd dev/fd
`;

/** /proc with the node's own boot id, /sys, and the cgroup file systems of LAB_CGROUPS. */
export const MOUNT_KERNEL_FILE_SYSTEMS = `
"$bb" mount -t proc proc proc
"$bb" mount --bind "$LAB_DIR/boot-id" proc/sys/kernel/random/boot_id
"$bb" mount -t sysfs sysfs sys
cgroup_root=
printf '%s\\n' "$LAB_CGROUPS" | while read -r type name options; do
  [ -n "$type" ] || continue
  if [ "$name" = . ]; then
    "$bb" mount -t "$type" "$type" sys/fs/cgroup
  else
    [ -n "$cgroup_root" ] || "$bb" mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
    cgroup_root=mounted
    "$bb" mkdir -p "sys/fs/cgroup/$name"
    "$bb" mount -t "$type" \${options:+-o "$options"} "$type" "sys/fs/cgroup/$name"
  fi
done
`;

/**
 * The first program in a node's new namespaces: builds the node's root from tmpfs, its disks and read-only mounts of
 * the machine's programs, pivots into it, and stays as its init. All its mounts exist only in the node.
 *
 * As init it waits for the end of its input, which comes when the process that started the node dies for any reason. A
 * waiting shell reaps every orphan, as an init must.
 */
export const BOOT_SCRIPT = `
set -eu
exec 3<&0 </dev/null
# The machine's own procfs is still mounted here, so this is our pid as the machine counts.
read -r host_pid rest </proc/self/stat
bb="$LAB_BUSYBOX"
root="$LAB_DIR/root"

${BIND_READ_ONLY}"$bb" mount --make-rprivate /
"$bb" mkdir -p "$root"
"$bb" mount -t tmpfs -o mode=755 root "$root"
cd "$root"

for name in usr bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then
    "$bb" ln -s "$("$bb" readlink "/$name")" "$name"
  elif [ -d "/$name" ]; then
    bind_read_only "/$name"
  fi
done
for name in etc var opt root; do
  "$bb" mkdir "$name"
  "$bb" mount --bind "$LAB_DIR/disk/$name" "$name"
done
"$bb" mkdir -p run tmp dev proc sys home mnt
"$bb" mount -t tmpfs -o mode=755 run run
"$bb" mount -t tmpfs -o mode=1777 tmp tmp

"$bb" mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty kmsg; do
  [ -e "/dev/$name" ] || continue
  : >"dev/$name"
  "$bb" mount --bind "/dev/$name" "dev/$name"
done
${MOUNT_TERMINALS}"$bb" ln -s /proc/self/fd/0 dev/stdin
"$bb" ln -s /proc/self/fd/1 dev/stdout
"$bb" ln -s /proc/self/fd/2 dev/stderr

${MOUNT_KERNEL_FILE_SYSTEMS}
printf '%s\\n' "$LAB_VISIBLE" | while read -r dir; do
  [ -z "$dir" ] || [ -e ".$dir" ] || bind_read_only "$dir"
done

"$bb" mkdir .machine
"$bb" pivot_root . .machine
cd /
"$bb" umount -l /.machine
"$bb" rmdir /.machine
"$bb" hostname "$LAB_HOSTNAME"
"$bb" ip link set lo up

if [ -e /sys/fs/cgroup/cgroup.procs ]; then
  # v2 wants its processes in the leaves before a parent may hand controllers down.
  "$bb" mkdir -p /sys/fs/cgroup/init
  echo 1 >/sys/fs/cgroup/init/cgroup.procs
fi

echo "up $host_pid"
exec "$bb" env -i "$bb" sh -c '"$0" cat <&3 & exec 3<&-; wait "$!"' "$bb" >/dev/null 2>&1
`;
