import { join } from "node:path";
import { cached } from "./cache.ts";
import { runOrThrow } from "./command.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import { PAUSE_COMMAND, PAUSE_IMAGE } from "./pause-image.ts";
import { RUNC_WRAPPER, tolerantRunc } from "./runc.ts";
import type { RuntimeOptions, RuntimeSetup } from "./runtime-setup.ts";
import { CRIO } from "./runtimes.ts";
import { goBuild, type Tools, type Unavailable } from "./tools.ts";

/** CRI-O and its helpers. Built or unpacked into the lab's cache; nothing is installed on the machine. */
export interface Crio {
  readonly available: true;
  readonly version: string;
  /** crio, pinns, and copyimg, which imports an image into CRI-O's storage. */
  readonly binDir: string;
  readonly conmon: string;
}

/** Without the C libraries: a node needs no signatures, no btrfs and no device mapper. */
const TAGS = [
  "containers_image_openpgp",
  "containers_image_ostree_stub",
  "exclude_graphdriver_btrfs",
  "exclude_graphdriver_devicemapper",
];

export async function ensureCrio(): Promise<Crio | Unavailable> {
  const built = await goBuild("crio", CRIO.module, `v${CRIO.release}`, ["cmd/crio", "test/copyimg"], {
    tags: TAGS,
    also: async ({ moduleDir, dir }) => {
      // The one part of CRI-O in C: it pins a pod's namespaces.
      const sources = ["pinns.c", "sysctl.c"].map((file) => join(moduleDir, "pinns/src", file));
      await runOrThrow(["cc", "-std=c99", "-Os", "-s", "-static", "-o", join(dir, "pinns"), ...sources]);
    },
  });
  if (typeof built !== "string") return built;
  try {
    const debian = await cached("conmon", (dir) => unpackDebianPackages(["conmon"], dir));
    return { available: true, version: CRIO.release, binDir: built, conmon: join(debian, "usr/bin/conmon") };
  } catch (error) {
    return { available: false, reason: `conmon could not be unpacked: ${(error as Error).message}` };
  }
}

const CONFIG = "/etc/crio/crio.conf";
const DROP_IN = "/etc/crio/crio.conf.d/10-lab.conf";
const LOG = "/var/log/crio/crio.log";
const SOCKET = "/run/crio/crio.sock";
const POLICY = "/etc/containers/policy.json";
const STORAGE = { root: "/var/lib/containers/storage", runRoot: "/run/containers/storage" } as const;

export async function crioSetup(
  tools: Tools,
  { snapshotter, cgroup, extraConfig = "" }: RuntimeOptions,
): Promise<RuntimeSetup> {
  const crio = await ensureCrio();
  if (!crio.available) throw new Error(`no node with CRI-O: ${crio.reason}`);
  const driver = snapshotter === "native" ? "vfs" : "overlay";
  const where = ["--root", STORAGE.root, "--runroot", STORAGE.runRoot, "--storage-driver", driver];
  return {
    name: "crio",
    binDirs: [crio.binDir, join(tools.root, "usr/bin"), join(tools.root, "usr/sbin")],
    command: ["crio", "--config", CONFIG],
    socket: SOCKET,
    log: LOG,
    files: {
      [CONFIG]: crioConfig(crio, driver),
      [DROP_IN]: extraConfig,
      [POLICY]: JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] }),
      [RUNC_WRAPPER]: tolerantRunc(tools.runc, { oomScore: true, hugePages: true, controllers: cgroup === "v2" }),
    },
    importImage: (archive) => {
      const image = ["--image-name", PAUSE_IMAGE, "--import-from", `oci-archive:${archive}`];
      return ["copyimg", ...where, "--signature-policy", POLICY, ...image];
    },
  };
}

function crioConfig({ binDir, conmon }: Crio, driver: string): string {
  return `[crio]
root = "${STORAGE.root}"
runroot = "${STORAGE.runRoot}"
storage_driver = "${driver}"
[crio.api]
listen = "${SOCKET}"
stream_address = "127.0.0.1"
[crio.runtime]
default_runtime = "runc"
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
pinns_path = "${binDir}/pinns"
log_level = "info"
apparmor_profile = "unconfined"
# The lab has no iptables.
disable_hostport_mapping = true
[crio.runtime.runtimes.runc]
runtime_path = "${RUNC_WRAPPER}"
runtime_root = "/run/runc"
runtime_type = "oci"
monitor_path = "${conmon}"
[crio.image]
pause_image = "${PAUSE_IMAGE}"
pause_command = "${PAUSE_COMMAND}"
signature_policy = "${POLICY}"
[crio.nri]
enable_nri = false
[crio.network]
network_dir = "/etc/cni/net.d/"
plugin_dirs = ["/opt/cni/bin/"]
`;
}
