import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { formatDocument } from "../../src/report/output.ts";

const text = fc.string({ unit: "binary" });
const documents = fc.record({
  name: text,
  list: fc.array(text),
  nested: fc.dictionary(fc.stringMatching(/^[a-z]+$/), text),
});

test("written values are read back the same, with any names", async () => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      expect(JSON.parse(await formatDocument(document, "json"))).toEqual({ ...document });
      expect(parse(await formatDocument(document, "yaml"))).toEqual({ ...document });
    }),
  );
});

test("control and invisible characters are escaped", async () => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      for (const format of ["json", "yaml"] as const) {
        expect(await formatDocument(document, format)).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
      }
    }),
  );
});
