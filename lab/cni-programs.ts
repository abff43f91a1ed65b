import { type GoBuildOptions, goBuild, type Unavailable } from "./tools.ts";

interface CniProgram extends GoBuildOptions {
  readonly module: string;
  readonly version: string;
  readonly packages: readonly string[];
}

const CNI = { module: "github.com/containernetworking/cni", version: "v1.3.1" } as const;
const KUBE_OVN = "github.com/kubeovn/kube-ovn";
const MULTUS = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4";

/**
 * What the first report of the delete deadlock asks multus for: a DEL succeeds when multus has no cache of the
 * container, because its ADD never completed.
 */
function succeedWithoutCache(source: string): string {
  return source.replace(/(if !useCacheConf \{\n)/, "$1\t\tif os.IsNotExist(err) {\n\t\t\treturn nil\n\t\t}\n");
}

/** The plugin directories of libcni's own tests, with the guard's in front where LAB_GUARD_DIR names it. */
function searchGuardFirst(source: string): string {
  return source.replace(/\[\]string\{(cniBinPath|filepath\.Dir\([^)]*\))\}/g, "searched($1)");
}

function readGuardDir(source: string): string {
  const searched = `
func searched(dir string) []string {
	if guard := os.Getenv("LAB_GUARD_DIR"); guard != "" {
		return []string{guard, dir}
	}
	return []string{dir}
}
`;
  return `${source.replace("import (\n", 'import (\n\t"os"\n')}${searched}`;
}

/** CNI programs for tests of the guard, one row each; multus and containerd are in tools.ts. */
const PROGRAMS = {
  cnitool: { ...CNI, packages: ["cnitool"] },
  "libcni-suite": {
    ...CNI,
    packages: ["plugins/test/noop", "plugins/test/sleep"],
    tests: ["libcni"],
    patches: { "libcni/api_test.go": searchGuardFirst, "libcni/libcni_suite_test.go": readGuardDir },
  },
  "kube-ovn": {
    module: KUBE_OVN,
    version: "v1.14.10",
    packages: ["cmd/cni"],
    // Its own version of multus is on no proxy any more, and the next one asks for a library that does not fit the rest.
    replaced: [`${MULTUS}@v4.2.4`, "github.com/google/gnostic-models@v0.6.9"],
  },
  "patched-multus": {
    module: MULTUS,
    version: "v4.3.0",
    packages: ["cmd/multus"],
    patches: { "pkg/multus/multus.go": succeedWithoutCache },
  },
} as const satisfies Readonly<Record<string, CniProgram>>;

export type CniProgramName = keyof typeof PROGRAMS;

/** The directory of its executables. */
export function ensureCniProgram(name: CniProgramName): Promise<string | Unavailable> {
  const { module, version, packages, ...options }: CniProgram = PROGRAMS[name];
  return goBuild(name, module, version, packages, options);
}
