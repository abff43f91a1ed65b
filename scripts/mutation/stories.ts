/**
 * Breaks what each story in the lab is about, and runs the story on the broken build: `make story-mutation`, or
 * `make story-mutation STORIES="power-cut crio/node"`. Every selected test has to fail.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { cacheDir } from "../../lab/cache.ts";
import { runOrThrow } from "../../lab/command.ts";
import { applied } from "./edits.ts";
import { STORY_MUTANTS, type StoryMutant } from "./story-mutants.ts";

const WORK = ".cache/mutation/stories";
const JOBS = Number(process.env["STORY_JOBS"] ?? 2);
/** Most stories wait minutes for what a broken build never does. */
const LONGEST_WAIT_SECONDS = "150";
const COPY_MS = 300_000;
/** Not tracked, and the same in every copy. */
const GENERATED = ["src/runtime/gen", "src/agent/page/gen"];

interface TestResult {
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages: readonly string[];
}

interface Outcome {
  readonly mutant: StoryMutant;
  readonly seconds: number;
  readonly failed: readonly TestResult[];
  readonly passed: readonly TestResult[];
  readonly skipped: readonly TestResult[];
}

/** Hard links for what no build writes to. */
async function copyTree(): Promise<string> {
  const dir = mkdtempSync(resolve(WORK, "copy-"));
  const { stdout } = await runOrThrow(["git", "ls-files", "-co", "--exclude-standard"]);
  for (const file of stdout.split("\n").filter((name) => name !== "" && existsSync(name)))
    cpSync(file, join(dir, file), { verbatimSymlinks: true });
  for (const generated of GENERATED) cpSync(generated, join(dir, generated), { recursive: true });
  await runOrThrow(["cp", "-al", "node_modules", dir], { timeoutMs: COPY_MS });
  return dir;
}

async function runMutant(mutant: StoryMutant, dir: string): Promise<Outcome> {
  const startedAt = performance.now();
  const results = join(dir, "results.json");
  rmSync(results, { force: true });
  const log = openSync(join(WORK, `${STORY_MUTANTS.indexOf(mutant)}.log`), "w");
  const run = async (...args: readonly string[]) => {
    const env = { ...process.env, UNGHOST_LAB_CACHE: cacheDir(), UNGHOST_LAB_LONGEST_WAIT_S: LONGEST_WAIT_SECONDS };
    const child = spawn(process.execPath, args, { cwd: dir, env, stdio: ["ignore", log, log] });
    const [code] = (await once(child, "exit")) as [number | null];
    return code;
  };
  const paths = [...new Set(mutant.edits.map(({ file }) => file))];
  const originals = paths.map((path) => readFileSync(join(dir, path), "utf8"));
  try {
    for (const [index, path] of paths.entries())
      writeFileSync(join(dir, path), applied(originals[index] ?? "", path, mutant.edits));
    for (const script of ["scripts/build.ts", ...(needsImage(mutant) ? ["scripts/image.ts"] : [])])
      if ((await run(script)) !== 0) throw new Error(`${script} fails with this mutant: ${mutant.broken}`);
    const select = mutant.tests === undefined ? [] : ["-t", mutant.tests];
    const report = ["--reporter=json", `--outputFile=${results}`];
    await run(scriptFor(mutant), mutant.story, ...select, ...report);
  } finally {
    for (const [index, path] of paths.entries()) writeFileSync(join(dir, path), originals[index] ?? "");
  }
  const tests = testsIn(results);
  const of = (status: string) => tests.filter((test) => test.status === status);
  return {
    mutant,
    seconds: Math.round((performance.now() - startedAt) / 1000),
    failed: of("failed"),
    passed: of("passed"),
    skipped: tests.filter(({ status }) => status !== "failed" && status !== "passed"),
  };
}

function testsIn(results: string): readonly TestResult[] {
  if (!existsSync(results)) return [];
  const { testResults } = JSON.parse(readFileSync(results, "utf8")) as {
    readonly testResults: readonly { readonly assertionResults: readonly TestResult[] }[];
  };
  return testResults.flatMap(({ assertionResults }) => assertionResults);
}

function scriptFor({ story }: StoryMutant): string {
  const scripts = { cluster: "cluster-test.ts", systemd: "boot-test.ts", crio: "crio-test.ts" } as const;
  return `scripts/${scripts[story.split("/")[1] as keyof typeof scripts]}`;
}

function needsImage({ story }: StoryMutant): boolean {
  return /importUnghostImage|installChart/.test(readFileSync(story, "utf8"));
}

function print({ mutant, seconds, failed, passed }: Outcome): void {
  const all = failed.length + passed.length;
  const verdict = failed.length > 0 && passed.length === 0 ? "killed" : "SURVIVED";
  console.log(`${verdict}: ${mutant.story}, ${mutant.broken} (${failed.length} of ${all} tests fail, ${seconds} s)`);
  for (const { fullName, failureMessages } of failed) {
    const [first = ""] = (failureMessages[0] ?? "").split("\n");
    console.log(`  ${fullName}\n    ${first.slice(0, 300)}`);
  }
  for (const { fullName } of passed) console.log(`  PASSES: ${fullName}`);
}

/** Tests that no mutant has selected, for information: a story may have tests of details. */
function untouched(outcomes: readonly Outcome[]): readonly string[] {
  const selected = new Set(
    outcomes.flatMap(({ failed, passed }) => [...failed, ...passed]).map((test) => test.fullName),
  );
  const all = outcomes.flatMap(({ skipped }) => skipped.map(({ fullName }) => fullName));
  return [...new Set(all)].filter((name) => !selected.has(name));
}

const wanted = process.argv.slice(2);
const queue = STORY_MUTANTS.filter(({ story }) => wanted.length === 0 || wanted.some((word) => story.includes(word)));
mkdirSync(WORK, { recursive: true });
const outcomes: Outcome[] = [];
const slots = Array.from({ length: Math.min(JOBS, queue.length) }, async () => {
  const dir = await copyTree();
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const outcome = await runMutant(mutant, dir);
    outcomes.push(outcome);
    print(outcome);
  }
  rmSync(dir, { recursive: true, force: true });
});
await Promise.all(slots);
const survivors = outcomes.filter(({ failed, passed }) => failed.length === 0 || passed.length > 0);
for (const name of untouched(outcomes)) console.log(`no mutant is for: ${name}`);
console.log(`${outcomes.length - survivors.length} killed, ${survivors.length} survived`);
process.exit(survivors.length === 0 && outcomes.length > 0 ? 0 : 1);
