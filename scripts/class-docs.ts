import { readFileSync, writeFileSync } from "node:fs";
import type { Category, FailureClass } from "../src/classes/failure-class.ts";
import { classes } from "../src/classes/index.ts";

const FILE = new URL("../docs/classes.md", import.meta.url);

const CHAPTERS: readonly (readonly [Category, string])[] = [
  ["creation-blocked", "Creation blocked"],
  ["removal-fails", "Stop or remove keeps failing"],
  ["leak", "Leaks: no error at the time"],
  ["runtime-down", "The runtime cannot start or answer"],
  ["left-behind", "Left behind by a crash"],
  ["storage", "Volumes"],
  ["other-runtime", "Other runtimes"],
  ["not-a-failure", "Not failures"],
];

function classesDocument(): string {
  const chapters = CHAPTERS.map(([category, title]) =>
    chapter(
      title,
      classes.filter((one) => one.category === category),
    ),
  );
  return `${[HEAD, table(), ...chapters].join("\n\n")}\n`;
}

const HEAD = `# Failure classes

Every way a pod sandbox is known to get stuck on a node. This page is generated from \`src/classes\` by
\`node scripts/class-docs.ts\`; \`unghost explain CLASS\` prints the same offline.`;

function table(): string {
  const rows = classes.map((one) => {
    const seen = "how" in one.inSnapshot ? "yes" : "no";
    return `| ${one.code} | [${one.id}](#${anchor(one)}) | ${escapeCell(one.title)} | ${seen} | ${one.treatment.mode} |`;
  });
  return ["| | class | what it is | seen by scan | healing |", "|---|---|---|---|---|", ...rows].join("\n");
}

function chapter(title: string, members: readonly FailureClass[]): string {
  return [`## ${title}`, ...members.map(page)].join("\n\n");
}

function page(one: FailureClass): string {
  const { treatment, inSnapshot } = one;
  const parts = [
    `### ${heading(one)}`,
    `**${one.title}.** ${plain(one.explanation)}`,
    `**Why it happens.** ${plain(one.mechanism)}`,
    one.signatures().length > 0 ? `**In logs**\n\n${list(one.signatures().map(({ text }) => code(text)))}` : "",
    "how" in inSnapshot
      ? `**On a node.** ${plain(inSnapshot.how)}`
      : `**On a node.** Not visible: ${plain(inSnapshot.why)}`,
    versionsOf(one),
    `**Healing: ${treatment.mode}${treatment.mode !== "none" && treatment.reversible ? ", can be undone" : ""}.**`,
    list(treatment.steps),
    treatment.gates.length > 0 ? `Only when proven:\n\n${list(treatment.gates)}` : "",
    one.byHand.length > 0 ? `**Manual steps**\n\n${list(one.byHand)}` : "",
    `**Danger.** ${plain(one.danger)}`,
    `**Reports**: ${one.links.map((link) => `[${shortLink(link)}](${link})`).join(", ")}`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

function versionsOf({ affected: { since, until, ends, note } }: FailureClass): string {
  const rows = [
    `Since: ${since}`,
    `Until: ${until === "open" ? "the newest releases still have it" : until}`,
    `Ended by: ${ends}`,
    ...(note === undefined ? [] : [note]),
  ];
  return `**Versions**\n\n${list(rows)}`;
}

function heading(one: FailureClass): string {
  return `${one.code} ${one.id}`;
}

function anchor(one: FailureClass): string {
  return heading(one).toLowerCase().replaceAll(" ", "-");
}

/** Angle brackets outside code would be parsed as HTML. */
function list(lines: readonly string[]): string {
  return lines.map((line) => `- ${line.startsWith("`") ? line : plain(line)}`).join("\n");
}

function plain(text: string): string {
  return text.replace(/[<*]/g, "\\$&");
}

function code(text: string): string {
  return `\`${text}\``;
}

function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function shortLink(link: string): string {
  return link.replace("https://github.com/", "").replace("/issues/", "#").replace("/pull/", "#");
}

const wanted = classesDocument();
if (process.argv.includes("--check")) {
  if (readFileSync(FILE, "utf8") !== wanted) {
    process.stderr.write("docs/classes.md does not match src/classes. Run: node scripts/class-docs.ts\n");
    process.exitCode = 1;
  }
} else {
  writeFileSync(FILE, wanted);
}
