/**
 * Loaded before unghost (`node --import`), imitates Windows for it: paths, environment, missing functions and flags. Files
 * below C:\ are those in WINDOWS_DRIVE_C. Whatever only a Linux node has ends the program.
 */
import childProcess from "node:child_process";
import fs from "node:fs";
import { registerHooks, syncBuiltinESMExports } from "node:module";
import os from "node:os";
import path from "node:path";

const drive = process.env["WINDOWS_DRIVE_C"] ?? "";

Object.defineProperty(process, "platform", { value: "win32" });
for (const name of ["getuid", "geteuid", "getgid", "execve"]) Reflect.deleteProperty(process, name);
os.homedir = () => process.env["USERPROFILE"] ?? "C:\\";
for (const flag of ["O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"]) Reflect.deleteProperty(fs.constants, flag);

/** Only for unghost and its packages: Node loads its modules by the paths of this machine. */
const WINDOWS_PATHS = `data:text/javascript,
  import path from "node:path";
  export default path.win32;
  export const { ${Object.keys(path.win32).join(", ")} } = path.win32;`;
registerHooks({
  resolve: (specifier, context, next) =>
    /^(?:node:)?path$/.test(specifier) &&
    context.parentURL?.startsWith("file:") &&
    !context.conditions.includes("require")
      ? { url: WINDOWS_PATHS, shortCircuit: true }
      : next(specifier, context),
});

const withPath = [
  "existsSync",
  "openSync",
  "readFileSync",
  "statSync",
  "lstatSync",
  "realpathSync",
  "readdirSync",
] as const;
for (const name of withPath) {
  const real: unknown = fs[name];
  if (typeof real !== "function") continue;
  const onDrive = (file: unknown, ...rest: readonly unknown[]): unknown =>
    Reflect.apply(real, fs, [typeof file === "string" ? onThisMachine(file) : file, ...rest]);
  Reflect.set(fs, name, Object.assign(onDrive, real));
}
for (const name of ["spawn", "spawnSync", "execFile", "execFileSync"] as const)
  Reflect.set(childProcess, name, (program: string) => onlyOnNodes(`starts ${program}`));
syncBuiltinESMExports();

const ON_NODES = /^\/(?:proc|sys|dev|etc|var|run)(?:\/|$)/;

function onThisMachine(file: string): string {
  if (ON_NODES.test(file)) return onlyOnNodes(`reads ${file}`);
  return /^C:\\/i.test(file) ? `${drive}/${file.slice(3).replaceAll("\\", "/")}` : file;
}

function onlyOnNodes(what: string): never {
  fs.writeSync(2, `on Windows, unghost ${what}\n`);
  process.exit(99);
}
