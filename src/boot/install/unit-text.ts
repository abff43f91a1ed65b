/** One line of a unit, with the reason for it. */
export interface Setting {
  readonly key: string;
  readonly value: string;
  readonly why?: string;
}

/** Switches that need no explanation. */
export function on(...keys: readonly string[]): readonly Setting[] {
  return keys.map((key) => ({ key, value: "yes" }));
}

export interface UnitSection {
  readonly name: "Unit" | "Service" | "Install";
  readonly settings: readonly Setting[];
  /** What is left out on purpose, and why. */
  readonly leftOut?: readonly string[];
}

export interface Unit {
  /** With its suffix. */
  readonly name: string;
  readonly intro: readonly string[];
  readonly sections: readonly UnitSection[];
}

const WIDTH = 100;

export function unitText({ intro, sections }: Pick<Unit, "intro" | "sections">): string {
  const parts = [intro.map((text) => comment(text)).join("\n#\n"), ...sections.map(sectionText)];
  return `${parts.join("\n\n")}\n`;
}

function sectionText({ name, settings, leftOut = [] }: UnitSection): string {
  const lines = settings.map(({ key, value, why }) => `${why === undefined ? "" : `${comment(why)}\n`}${key}=${value}`);
  const reasons = leftOut.length === 0 ? [] : ["# Left out on purpose:", ...leftOut.map((text) => comment(text, "- "))];
  return [`[${name}]`, ...lines, ...reasons].join("\n");
}

/**
 * Text wrapped into comment lines. systemd joins a comment that ends in a backslash with the next line, so ours never
 * do.
 */
export function comment(text: string, bullet = ""): string {
  const lines: string[] = [];
  let line = `# ${bullet}`;
  for (const word of text.split(" ")) {
    if (line.length + word.length > WIDTH) {
      lines.push(line.trimEnd());
      line = `# ${" ".repeat(bullet.length)}`;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join("\n");
}

/** A command line for ExecStart: each argument stays one word, and nothing is expanded. */
export function commandLine(words: readonly string[]): string {
  return words.map(unitWord).join(" ");
}

function unitWord(word: string): string {
  const inert = word.replace(/%/g, "%%").replace(/\$/g, "$$$$");
  if (/^[\w@+=:,./%$-]+$/.test(inert)) return inert;
  return `"${inert.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}
