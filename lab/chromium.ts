import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheDir, cached } from "./cache.ts";
import { run, runOrThrow } from "./command.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { Unavailable } from "./tools.ts";

/** Debian's chromium in the lab's cache. `env` contains the paths of its unpacked libraries and fonts. */
export interface Chromium {
  readonly available: true;
  readonly executable: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

const NAME = "chromium";
const APT_MS = 300_000;
const START_MS = 60_000;
const FONTS_CONF = "unghost-fonts.conf";

/** Root may not use the browser's sandbox, and a container's /dev/shm is too small. */
const ARGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];

/** The browser and its missing libraries; nothing is installed. */
export async function ensureChromium(): Promise<Chromium | Unavailable> {
  try {
    return chromiumIn(await cached(NAME, unpackChromium));
  } catch (error) {
    return { available: false, reason: `Debian's chromium cannot be had: ${(error as Error).message}` };
  }
}

function chromiumIn(root: string): Chromium {
  return {
    available: true,
    executable: join(root, "usr/lib/chromium/chromium"),
    env: { LD_LIBRARY_PATH: libraryDirs(root).join(":"), FONTCONFIG_FILE: join(root, FONTS_CONF) },
    args: ARGS,
  };
}

/** Some libraries are loaded by absolute path, which does not work for an unpacked package. */
function libraryDirs(root: string): readonly string[] {
  const machine = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  const dirs = [`usr/lib/${machine}`, `lib/${machine}`, `usr/lib/${machine}/pulseaudio`];
  return dirs.map((dir) => join(root, dir));
}

async function unpackChromium(dir: string): Promise<void> {
  // Also if it is installed: the browser's files are expected beside it.
  const packages = new Set([NAME, `${NAME}-common`, ...(await missingPackages())]);
  await unpackDebianPackages([...packages], dir);
  await writeFile(join(dir, FONTS_CONF), fontsConf());
  // Other distributions have packages of this name without a browser.
  const { executable, env } = chromiumIn(dir);
  await runOrThrow([executable, "--version"], { env, timeoutMs: START_MS });
}

/** The browser's dependencies that this machine lacks, from apt. */
async function missingPackages(): Promise<readonly string[]> {
  const simulation = ["apt-get", "install", "--simulate", "--no-install-recommends", NAME];
  const first = await run(simulation, { timeoutMs: APT_MS });
  // A fresh machine has no package lists yet.
  if (first.code !== 0) await run(["apt-get", "update", "-q"], { timeoutMs: APT_MS });
  const { stdout } = first.code === 0 ? first : await runOrThrow(simulation, { timeoutMs: APT_MS });
  return [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name = ""]) => name);
}

/** The machine's fonts, or the unpacked ones: a machine without fonts has no /etc/fonts either. */
function fontsConf(): string {
  const root = join(cacheDir(), NAME);
  return `<?xml version="1.0"?>
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>${root}/usr/share/fonts</dir>
  <cachedir>${root}/fonts-cache</cachedir>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
</fontconfig>
`;
}
