import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ensureCniProgram } from "../../lab/cni-programs.ts";
import { GUARD_BIN_DIR, GUARD_LAUNCHER } from "../../src/guard/home.ts";
import { installGuard } from "../e2e/guarded-node.ts";
import { start } from "../lab/real-node.ts";

const suite = await ensureCniProgram("libcni-suite");
const [suiteDir, why] = typeof suite === "string" ? [suite, ""] : ["", `: skipped, ${suite.reason}`];

/** The noop plugin fails a DEL whose ADD never completed: libcni gets success, for that is what the guard is for. */
const DECIDED = "when the plugin errors unmarshals and returns the error";
const NOT_THE_SAME = [
  `Invoking plugins Invoking a plugin list DelNetworkList ${DECIDED}`,
  // The message of libcni names every directory that it has searched; these specs know of one.
  "Invoking plugins Invoking a plugin list ValidateNetworkList Checks that all plugins exist",
  `Invoking plugins Invoking a single plugin DelNetwork ${DECIDED}`,
  "Invoking plugins Invoking a single plugin ValidateNetwork catches non-existent plugins",
];

/** The suite builds its plugins with go: this one is asked, and puts what was built before where they are expected,
 * and where the guard finds them for VERSION, which libcni calls without CNI_PATH. */
const FAKE_GO = "/opt/lab-go/go";
const GO_SCRIPT = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" != -o ] || out=$2; package=$1; shift; done
cp "${suiteDir}/\${package##*/}" "$out"
cp "${suiteDir}/\${package##*/}" /opt/cni/bin/
`;
const PLUGINS = ["noop", "sleep"];
const REPORT = "/var/lib/report.json";
/** Examples of earlier releases, which have to be downloaded and built. */
const NEEDS_A_COMPILER = "Backwards compatibility";

interface Spec {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly State: string;
}

async function suiteOn(isGuarded: boolean): Promise<readonly string[]> {
  const node = await start();
  if (isGuarded) await installGuard(node);
  for (const name of isGuarded ? PLUGINS : [])
    await node.check(["ln", "-s", GUARD_LAUNCHER, `${GUARD_BIN_DIR}/${name}`]);
  await node.writeFile(FAKE_GO, GO_SCRIPT, 0o755);
  const flags = ["--ginkgo.no-color", `--ginkgo.json-report=${REPORT}`, `--ginkgo.skip=${NEEDS_A_COMPILER}`];
  const path = `/opt/lab-go:${(await node.check(["printenv", "PATH"])).trim()}`;
  await node.exec([`${suiteDir}/libcni.test`, ...flags], {
    env: { PATH: path, LAB_GUARD_DIR: isGuarded ? GUARD_BIN_DIR : "" },
  });
  const [report] = JSON.parse(readFileSync(node.path(REPORT), "utf8")) as { readonly SpecReports: readonly Spec[] }[];
  return (report?.SpecReports ?? [])
    .filter(({ State }) => State !== "skipped")
    .map((spec) => `${spec.State}: ${[...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(" ")}`)
    .toSorted();
}

test.skipIf(why !== "")(`libcni's own tests pass behind the guard, but for its decisions${why}`, async () => {
  const plain = await suiteOn(false);
  const guarded = await suiteOn(true);

  expect(plain.length).toBeGreaterThan(50);
  expect(new Set(plain.map((spec) => spec.split(":")[0]))).toEqual(new Set(["passed"]));
  expect(guarded.filter((spec) => !plain.includes(spec))).toEqual(NOT_THE_SAME.map((spec) => `failed: ${spec}`));
  expect(guarded).toHaveLength(plain.length);
});
