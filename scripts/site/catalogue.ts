import { resolve } from "node:path";
import type { Plugin } from "esbuild";
import type { FailureClass, Signature } from "../../src/classes/failure-class.ts";
import { classes } from "../../src/classes/index.ts";

const REGISTRY = resolve("src/classes/index.ts");

/**
 * The catalogue without the code that detects and heals on a node: what is needed to recognise a text and to answer it,
 * which is a third of the whole. The page of each class has the rest.
 */
export const catalogueWithoutDetection: Plugin = {
  name: "catalogue-without-detection",
  setup: (page) => {
    page.onResolve({ filter: /\/catalogue\.ts$/ }, ({ importer }) =>
      importer === REGISTRY ? { path: "catalogue", namespace: "slim" } : undefined,
    );
    page.onLoad({ filter: /.*/, namespace: "slim" }, () => ({ contents: slimCatalogue(), loader: "js" }));
  },
};

function slimCatalogue(): string {
  return classes.map((one, index) => `export const c${index} = ${definitionOf(one)};`).join("\n");
}

function definitionOf({ id, code, title, explanation, logFragments, treatment, byHand, danger, ...one }: FailureClass) {
  const { mode, reversible } = treatment;
  const { sharedCause, blocksEveryCall } = one;
  const known = { id, code, sharedCause, blocksEveryCall, title, explanation, logFragments, byHand, danger };
  const rest = {
    mechanism: "",
    inSnapshot: "",
    versions: {},
    links: [],
    treatment: { mode, reversible, steps: [], gates: [] },
  };
  const fields = Object.entries({ ...known, ...rest }).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `{ ${fields.join(", ")}, signatures: () => [${one.signatures().map(signatureOf).join(", ")}] }`;
}

function signatureOf(signature: Signature): string {
  const fields = Object.entries(signature).map(([name, value]) => `${name}: ${literal(value)}`);
  return `{ ${fields.join(", ")} }`;
}

function literal(value: unknown): string {
  return value instanceof RegExp ? String(value) : JSON.stringify(value);
}
