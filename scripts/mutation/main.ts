/**
 * Mutation testing of the safety-critical modules: `make mutation`, or `make mutation MODULES="liveness steps"`.
 * Results of earlier runs are reused for unchanged code. The table in docs/mutation.md is written from the last results
 * once every module was run here.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Stryker } from "@stryker-mutator/core";
import { MODULES, type MutatedModule, sourcesOf, testsOf } from "./modules.ts";
import { isKilled, isSurvivor, type Mutant, mutantOf } from "./mutant.ts";
import { EQUIVALENT, type Equivalent } from "./survivors.ts";

const WORK = ".cache/mutation";
const TABLE = "docs/mutation.md";
const WANTED_PERCENT = 90;

async function mutate(module: MutatedModule): Promise<readonly Mutant[]> {
  const { name } = module;
  forgetSurvivors(incrementalFile(name));
  process.env["MUTATION_TESTS"] = testsOf(module).join(",");
  const results = await new Stryker({
    mutate: sourcesOf(module),
    testRunner: "vitest",
    vitest: { configFile: "vitest.mutation.config.ts", related: false },
    plugins: ["@stryker-mutator/vitest-runner", "./scripts/mutation/reporter.ts", "./scripts/mutation/sentences.ts"],
    ignorers: ["sentences"],
    coverageAnalysis: "perTest",
    concurrency: Number(process.env["MUTATION_CONCURRENCY"] ?? 1),
    // A test that is slow on a busy machine must not count as a killed mutant.
    timeoutMS: 30_000,
    incremental: true,
    incrementalFile: incrementalFile(name),
    tempDirName: `${WORK}/sandbox-${name}`,
    ignorePatterns: ["dist", ".cache", "docs", "deploy", "bench", "coverage"],
    // Rewriting tsconfig.json needs an API that TypeScript 7 does not have, and there is nothing to rewrite.
    tsconfigFile: "none.json",
    reporters: ["clear-text", "survivors"],
    clearTextReporter: { allowColor: false, reportTests: false, reportMutants: false, reportScoreTable: true },
    thresholds: { high: 100, low: 90, break: null },
  } as never).runMutationTest();
  return results.map(mutantOf);
}

function incrementalFile(name: string): string {
  return `${WORK}/${name}.incremental.json`;
}

/** StrykerJS detects a changed test, but not a changed helper: survivors are always tested again. */
function forgetSurvivors(path: string): void {
  if (!existsSync(path)) return;
  const report = JSON.parse(readFileSync(path, "utf8")) as { files: Record<string, { mutants: Mutant[] }> };
  for (const file of Object.values(report.files)) file.mutants = file.mutants.filter(isKilled);
  writeFileSync(path, JSON.stringify(report));
}

interface Score {
  readonly name: string;
  readonly total: number;
  readonly killed: number;
  readonly survivors: readonly (Mutant & { readonly reason: string | undefined })[];
}

function scoreOf(name: string, mutants: readonly Mutant[]): Score {
  const killed = mutants.filter(isKilled);
  const survivors = mutants.filter(isSurvivor).map((mutant) => ({ ...mutant, reason: reasonOf(mutant)?.reason }));
  return { name, total: killed.length + survivors.length, killed: killed.length, survivors };
}

function reasonOf({ file, change }: Mutant): Equivalent | undefined {
  return EQUIVALENT.find((one) => one.file === file && one.change === change);
}

function isSurvivorOf({ file, change }: Equivalent, scores: readonly Score[]): boolean {
  return scores.some(({ survivors }) => survivors.some((one) => one.file === file && one.change === change));
}

function percent({ killed, total }: Score): number {
  return Math.floor((killed / total) * 1000) / 10;
}

function tableOf(scores: readonly Score[]): string {
  const rows = scores.map((score) => {
    const { name, total, killed, survivors } = score;
    const equivalent = survivors.filter(({ reason }) => reason !== undefined).length;
    const left = survivors.length - equivalent;
    return `| ${name} | ${total} | ${killed} | ${equivalent} | ${left} | ${percent(score)} % |`;
  });
  const named = scores
    .flatMap(({ survivors }) => survivors)
    .filter(({ reason }) => reason !== undefined)
    .map(({ file, change, reason }) => `| \`${file}\` | \`${change.replaceAll("|", "\\|")}\` | ${reason} |`);
  return `# Mutation testing

Written by \`make mutation\` ([scripts/mutation](../scripts/mutation)). StrykerJS changes the safety-critical modules one
expression at a time and runs their unit tests against each change: a change that no test notices is a gate that could rot.
The aim is ${WANTED_PERCENT} % killed in each module, and every survivor either killed or named below with the reason why no test could
see a difference. \`make mutation MODULES="liveness steps"\` runs some of them and prints the survivors that are not named yet.

| module | mutants | killed | equivalent | left | score |
|---|---:|---:|---:|---:|---:|
${rows.join("\n")}

| file | change | why it is equivalent |
|---|---|---|
${[...new Set(named)].join("\n")}
`;
}

function resultFile(name: string): string {
  return `${WORK}/${name}.json`;
}

mkdirSync(WORK, { recursive: true });
// The tests sync their files: on a busy disk the syncs take as long as everything else.
if (existsSync("/dev/shm")) {
  const scratch = mkdtempSync("/dev/shm/unghost-mutation-");
  process.env["TMPDIR"] = scratch;
  process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));
}
const asked = process.argv.slice(2);
for (const module of MODULES) {
  if (asked.length > 0 && !asked.includes(module.name)) continue;
  console.log(`mutation: ${module.name}`);
  writeFileSync(resultFile(module.name), JSON.stringify(await mutate(module)));
}
const known = MODULES.filter(({ name }) => existsSync(resultFile(name)));
const scores = known.map(({ name }) => scoreOf(name, JSON.parse(readFileSync(resultFile(name), "utf8")) as Mutant[]));
for (const score of scores) {
  console.log(`${score.name}: ${score.killed} of ${score.total} mutants killed (${percent(score)} %)`);
  for (const { file, line, change, reason } of score.survivors) {
    if (reason === undefined) console.log(`  ${file}:${line}  ${change}`);
  }
}
const isComplete = known.length === MODULES.length;
// The table must have every module.
if (isComplete) writeFileSync(TABLE, tableOf(scores));
const stale = isComplete ? EQUIVALENT.filter((one) => !isSurvivorOf(one, scores)) : [];
for (const { file, change } of stale)
  console.log(`no survivor any more, remove it from survivors.ts: ${file}  ${change}`);
const isGood = scores.every((score) => percent(score) >= WANTED_PERCENT);
const isNamed = scores.every(({ survivors }) => survivors.every(({ reason }) => reason !== undefined));
process.exitCode = isGood && isNamed && stale.length === 0 ? 0 : 1;
