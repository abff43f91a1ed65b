/**
 * Mutation testing of the safety-critical modules: `make mutation`, or `make mutation MODULES="liveness steps"`. Results
 * of earlier runs are reused for what did not change. The table in docs/mutation.md is written from the last result of
 * every module that was run here.
 */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Stryker } from "@stryker-mutator/core";
import { MODULES, type MutatedModule } from "./modules.ts";
import { EQUIVALENT, type Equivalent } from "./survivors.ts";

const WORK = ".cache/mutation";
const TABLE = "docs/mutation.md";
const WANTED_PERCENT = 90;

interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  readonly change: string;
  readonly status: string;
}

async function mutate({ name, sources, tests }: MutatedModule): Promise<readonly Mutant[]> {
  process.env["MUTATION_TESTS"] = tests.flatMap((pattern) => globSync(pattern)).join(",");
  const results = await new Stryker({
    mutate: sources.flatMap((pattern) => globSync(pattern)),
    testRunner: "vitest",
    vitest: { configFile: "vitest.mutation.config.ts", related: false },
    plugins: ["@stryker-mutator/vitest-runner"],
    coverageAnalysis: "perTest",
    concurrency: Number(process.env["MUTATION_CONCURRENCY"] ?? 1),
    timeoutMS: 4000,
    incremental: true,
    incrementalFile: `${WORK}/${name}.incremental.json`,
    tempDirName: `${WORK}/sandbox-${name}`,
    ignorePatterns: ["dist", ".cache", "docs", "deploy", "bench", "coverage"],
    // The rewriting of tsconfig.json wants an API that TypeScript 7 does not have, and there is nothing to rewrite.
    tsconfigFile: "none.json",
    reporters: ["clear-text"],
    clearTextReporter: { allowColor: false, reportTests: false, reportMutants: false, reportScoreTable: true },
    thresholds: { high: 100, low: 90, break: null },
  } as never).runMutationTest();
  return results.map(({ fileName, location, mutatorName, replacement, status }) => {
    const file = fileName.slice(fileName.indexOf("src/"));
    const original = excerpt(file, location);
    return {
      file,
      line: location.start.line,
      mutator: mutatorName,
      change: `${original} -> ${oneLine(replacement ?? "")}`,
      status,
    };
  });
}

interface Position {
  readonly line: number;
  readonly column: number;
}

function excerpt(file: string, { start, end }: { readonly start: Position; readonly end: Position }): string {
  const lines = readFileSync(file, "utf8").split("\n");
  const taken = lines.slice(start.line - 1, end.line);
  const last = taken.length - 1;
  const cut = taken.map((line, index) =>
    line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined),
  );
  return oneLine(cut.join(" "));
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

const KILLED: ReadonlySet<string> = new Set(["Killed", "Timeout"]);
const COUNTED: ReadonlySet<string> = new Set(["Killed", "Timeout", "Survived", "NoCoverage"]);

interface Score {
  readonly name: string;
  readonly total: number;
  readonly killed: number;
  readonly survivors: readonly (Mutant & { readonly reason: string | undefined })[];
}

function scoreOf(name: string, mutants: readonly Mutant[]): Score {
  const counted = mutants.filter(({ status }) => COUNTED.has(status));
  const killed = counted.filter(({ status }) => KILLED.has(status));
  const survivors = counted
    .filter(({ status }) => !KILLED.has(status))
    .map((mutant) => ({ ...mutant, reason: reasonOf(mutant)?.reason }));
  return { name, total: counted.length, killed: killed.length, survivors };
}

function reasonOf({ file, change }: Mutant): Equivalent | undefined {
  return EQUIVALENT.find((one) => one.file === file && one.change === change);
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
writeFileSync(TABLE, tableOf(scores));
const isGood = scores.every((score) => percent(score) >= WANTED_PERCENT);
const isNamed = scores.every(({ survivors }) => survivors.every(({ reason }) => reason !== undefined));
process.exitCode = isGood && isNamed ? 0 : 1;
