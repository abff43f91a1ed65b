import { explainInWords, failureClasses } from "../src/library/index.ts";

/** A line of an answer is a paragraph: no wrapping by width. */
const ONE_LINE = Number.MAX_SAFE_INTEGER;
const NOTHING =
  "Not recognised: this text contains no failing sandbox, network or volume operation. Paste more of the log around it.";
const PAUSE_MS = 150;

const pages = new Map(failureClasses.flatMap(({ id, code }) => [[id, id] as const, [code, id] as const]));
const NAMES = /\b(?:[A-Z]\d{1,2}|[a-z0-9]+(?:-[a-z0-9]+)+)\b/g;

function start(): void {
  const text = document.querySelector("textarea");
  const answers = document.querySelector("#answers");
  if (text === null || answers === null) return;
  let timer: number | undefined;
  const show = (): void => answers.replaceChildren(...answersTo(text.value));
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(show, PAUSE_MS);
  });
  // Browsers keep the text over a reload.
  show();
}

function answersTo(text: string): readonly HTMLElement[] {
  if (text.trim() === "") return [];
  const words = explainInWords(text, ONE_LINE).trim();
  return (words === "" ? NOTHING : words).split("\n\n").map((answer) => {
    const element = document.createElement("section");
    element.className = "answer";
    element.append(...answer.split("\n").map(paragraph));
    return element;
  });
}

function paragraph(line: string, index: number): HTMLElement {
  const element = document.createElement(index === 0 ? "h2" : "p");
  const label = index === 0 ? undefined : /^([A-Z][a-z ]{1,12}:) /.exec(line)?.[1];
  if (label !== undefined) {
    const bold = document.createElement("b");
    bold.textContent = label;
    element.append(bold);
  }
  element.append(...withLinks(line.slice(label?.length ?? 0)));
  return element;
}

/** Ids and codes of classes lead to their pages. The text is never read as HTML. */
function withLinks(text: string): readonly (string | HTMLElement)[] {
  const parts: (string | HTMLElement)[] = [];
  let end = 0;
  for (const { 0: name, index } of text.matchAll(NAMES)) {
    const id = pages.get(name);
    if (id === undefined) continue;
    const link = document.createElement("a");
    link.href = `../classes/${id}/`;
    link.textContent = name;
    parts.push(text.slice(end, index), link);
    end = index + name.length;
  }
  return [...parts, text.slice(end)];
}

start();
