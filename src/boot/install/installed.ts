import { INIT_DIR } from "./detect.ts";
import { DROP_IN } from "./drop-in.ts";
import { SYSTEM_DIR } from "./files.ts";
import type { HostFiles } from "./host-files.ts";
import { authorship } from "./seal.ts";

export interface Installed {
  readonly path: string;
  /** Contains our line, modified or not; for a link: it leads to our script. */
  readonly isOurs: boolean;
}

const RUNLEVELS = "/etc/runlevels";
const OWN_UNIT = /^unghost-[a-z-]+\.service$/;
const OWN_SCRIPT = /^unghost-[a-z-]+$/;

/**
 * Every file that may be ours, found by its path and not by what the host runs: the distribution may be gone, and its
 * hook must still be removed. Active files come before the files they refer to.
 */
export function findInstalled(files: HostFiles): readonly Installed[] {
  const inSystem = files.names(SYSTEM_DIR);
  const dropIns = inSystem
    .filter((name) => name.endsWith(".service.d"))
    .map((name) => `${SYSTEM_DIR}/${name}/${DROP_IN}`);
  const units = inSystem.filter((name) => OWN_UNIT.test(name)).map((name) => `${SYSTEM_DIR}/${name}`);
  const scripts = files.names(INIT_DIR).filter((name) => OWN_SCRIPT.test(name));
  const links = files.names(RUNLEVELS).flatMap((level) => {
    const names = files.names(`${RUNLEVELS}/${level}`).filter((name) => OWN_SCRIPT.test(name));
    return names.map((name) => {
      const path = `${RUNLEVELS}/${level}/${name}`;
      return { path, isOurs: files.link(path) === `${INIT_DIR}/${name}` };
    });
  });
  const texts = [...dropIns, ...units, ...scripts.map((name) => `${INIT_DIR}/${name}`)];
  const found = texts.filter((path) => files.kind(path) !== "absent");
  return [...links, ...found.map((path) => ({ path, isOurs: isOurs(path, files) }))];
}

function isOurs(path: string, files: HostFiles): boolean {
  return files.kind(path) === "file" && authorship(files.read(path) ?? "") !== "foreign";
}
