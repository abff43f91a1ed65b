import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { formatOutput, parseOutput } from "../../src/fleet/output.ts";
import { tempDir } from "../support/temp-dir.ts";
import { OBJECTS, PRINTED } from "./kubectl-prints.ts";

async function printed(given: string, noHeaders = false): Promise<string> {
  const output = parseOutput(given);
  if (output instanceof Error) throw output;
  const names = OBJECTS.items.map(({ metadata }) => `node/${metadata.name}`);
  return await formatOutput(output, { document: OBJECTS, names, table: () => [] }, noHeaders);
}

test.each(PRINTED)("-o %s prints what kubectl prints", async (output, expected) => {
  expect(await printed(output)).toBe(expected);
});

test("templates are also read from files", async () => {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir.path, name), text);
    return join(dir.path, name);
  };
  const path = file("path", "{.items[*].count}");
  const columns = file("columns", "NODE VERDICT\n.metadata.name .verdict\n");
  const uneven = file("uneven", "NODE VERDICT\n.metadata.name\n");

  expect(await printed(`jsonpath-file=${path}`)).toBe("0 1 2");
  expect(await printed(`custom-columns-file=${columns}`, true)).toBe("n0    ghosts\nn1    healthy\nn2    ghosts\n");
  expect(parseOutput(`custom-columns-file=${uneven}`)).toMatchObject({ message: /as many paths/ });
  expect(parseOutput("jsonpath-file=/does/not/exist")).toMatchObject({ message: /cannot be read/ });
});
