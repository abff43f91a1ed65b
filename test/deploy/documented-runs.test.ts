import { expect, test } from "vitest";
import { documentedCommands, placeOf } from "../support/documented-commands.ts";

const commands = documentedCommands();

test("every documented command is run by a test, or its page says why not", () => {
  const neither = commands.filter((one) => one.notRun === undefined && placeOf(one) === undefined);

  expect(neither.map(({ page, command }) => `${page}: ${command}`)).toEqual([]);
});

test("commands are found in blocks, after prompts, in tables and in sentences", () => {
  const texts = commands.map(({ command }) => command);

  expect(texts.length).toBeGreaterThan(90);
  expect(texts).toEqual(
    expect.arrayContaining([
      "unghost heal --dry-run -o json > plan.json",
      "kubectl -n unghost get leases",
      "unghost install --agent",
      "kubectl cordon NODE",
    ]),
  );
});
