import { printable } from "../../host/printable.ts";
import { formatDocument } from "../../report/format.ts";
import type { EffectiveValue } from "./effective.ts";

/** A configuration file that says the same, with who said it behind each line. */
export async function renderConfigYaml(values: readonly EffectiveValue[]): Promise<string> {
  const { Document, isCollection, isNode } = await import("yaml");
  const document = new Document({});
  for (const { path, value, from } of values) {
    document.setIn(path, document.createNode(value));
    const node = document.getIn(path, true);
    if (!isNode(node)) continue;
    node.comment = ` ${printable(from)}`;
    if (isCollection(node)) node.flow = true;
  }
  return document.toString({ lineWidth: 0 });
}

/** The same for programs: each value with its origin beside it. */
export async function renderConfigJson(values: readonly EffectiveValue[]): Promise<string> {
  const { Document } = await import("yaml");
  const document = new Document({});
  for (const { path, value, from } of values) document.setIn(path, document.createNode({ value, from }));
  return await formatDocument(document.toJS(), "json");
}
