import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { FailureClass } from "../../src/classes/failure-class.ts";
import { classes } from "../../src/classes/index.ts";
import { escaped, list } from "./html.ts";

/** A page before the generator puts it into its layout. */
export interface Page {
  /** Of the site: `classes/pod-gone/`, which ends with a slash. */
  readonly path: string;
  readonly title: string;
  readonly format: "html" | "md";
  readonly content: string;
  /** A script of the site that the page loads. */
  readonly script?: string;
}

export function sitePages(): readonly Page[] {
  return [frontPage(), explainPage(), errorIndex(), classIndex(), ...classes.map(classPage), ...documents()];
}

function frontPage(): Page {
  const detected = classes.filter((one) => "how" in one.inSnapshot).length;
  return {
    path: "",
    title: "unghost",
    format: "html",
    content: `<p class="lead">unghost finds and heals ghost pod sandboxes on Kubernetes nodes: sandboxes that are dead but not gone, so that their names
stay reserved, their removal fails forever, and their pods never start again.</p>
<ul>
<li><a href="explain/">Explain an error line</a>: paste it, and see what it means and what to do. Nothing leaves your browser.</li>
<li><a href="errors/">Index of error texts</a>: search this page for the words of your error.</li>
<li><a href="classes/">Failure classes</a>: ${classes.length} known ways in which a sandbox gets stuck, ${detected} of them seen by a scan.</li>
<li><a href="docs/install/">Install</a>, <a href="docs/troubleshooting/">troubleshooting</a>, <a href="docs/">all documents</a>.</li>
</ul>`,
  };
}

function explainPage(): Page {
  return {
    path: "explain/",
    title: "Explain an error line",
    format: "html",
    script: "explain.js",
    content: `<p>Paste lines of the logs of kubelet, containerd or CRI-O, events, or the output of kubectl describe. The catalogue of unghost is part of
this page: your text is read in the browser, and sent nowhere.</p>
<label for="text">Error lines</label>
<textarea id="text" rows="8" spellcheck="false" autocomplete="off" placeholder="failed to reserve sandbox name …"></textarea>
<div id="answers" aria-live="polite"></div>
<noscript><p>Without scripts: search the <a href="../errors/">index of error texts</a>, or run <code>unghost explain</code>.</p></noscript>`,
  };
}

function errorIndex(): Page {
  const lines = classes.flatMap((one) => one.signatures().map(({ text }) => ({ text, one })));
  const rows = lines
    .toSorted((first, second) => first.text.localeCompare(second.text, "en", { sensitivity: "base" }))
    .map(
      ({ text, one }) =>
        `<li><a href="../classes/${one.id}/"><code>${escaped(text)}</code></a> ${escaped(one.title)}</li>`,
    );
  return {
    path: "errors/",
    title: "Index of error texts",
    format: "html",
    content: `<p>Variable parts are in angle brackets. Names, ids and times of your line: <a href="../explain/">explain it</a>.</p>\n<ul class="errors">\n${rows.join("\n")}\n</ul>`,
  };
}

function classIndex(): Page {
  const rows = classes.map((one) => {
    const seen = "how" in one.inSnapshot ? "yes" : "no";
    return `<tr><td>${one.code}</td><td><a href="${one.id}/">${one.id}</a></td><td>${escaped(one.title)}</td><td>${seen}</td><td>${one.treatment.mode}</td></tr>`;
  });
  return {
    path: "classes/",
    title: "Failure classes",
    format: "html",
    content: `<table>\n<thead><tr><th></th><th>class</th><th>what it is</th><th>seen by scan</th><th>healing</th></tr></thead>\n<tbody>\n${rows.join("\n")}\n</tbody></table>`,
  };
}

/** The error lines are headings: they are what people search for. */
function classPage(one: FailureClass): Page {
  const { affected, treatment, inSnapshot } = one;
  const errors = one
    .signatures()
    .map(({ text }, index) => `<h3 id="error-${index + 1}"><code>${escaped(text)}</code></h3>`);
  const parts = [
    `<p class="lead">${escaped(one.explanation)}</p>`,
    errors.length === 0 ? "" : `<h2 id="errors">Error lines</h2>\n${errors.join("\n")}`,
    section("Manual steps", list(one.byHand, "ol")),
    section("Warning", `<p class="warning">${escaped(one.danger)}</p>`),
    section(`Healing: ${treatment.mode}`, list(treatment.steps, "ol")),
    treatment.gates.length === 0 ? "" : section("Proven before", list(treatment.gates)),
    section("Why it happens", `<p>${escaped(one.mechanism)}</p>`),
    section("On a node", `<p>${escaped("how" in inSnapshot ? inSnapshot.how : `Not visible: ${inSnapshot.why}`)}</p>`),
    section("Versions", versionsOf(affected)),
    section(
      "Reports",
      `<ul>${one.links.map((link) => `<li><a href="${link}">${shortened(link)}</a></li>`).join("")}</ul>`,
    ),
  ];
  return {
    path: `classes/${one.id}/`,
    title: `${one.code} ${one.title}`,
    format: "html",
    content: parts.filter(Boolean).join("\n"),
  };
}

function versionsOf({ since, until, ends, note }: FailureClass["affected"]): string {
  const last = until === "open" ? "the newest releases still have it" : until;
  const rows = [["Since", since], ["Until", last], ["Ended by", ends], ...(note === undefined ? [] : [["Note", note]])];
  return `<dl>${rows.map(([term = "", text = ""]) => `<dt>${term}</dt><dd>${escaped(text)}</dd>`).join("")}</dl>`;
}

function section(title: string, content: string): string {
  return `<h2>${escaped(title)}</h2>\n${content}`;
}

function shortened(link: string): string {
  return link.replace("https://github.com/", "").replace(/\/(?:issues|pull)\//, "#");
}

/** The combined page of all classes is the catalogue itself. */
const NOT_A_DOCUMENT = "docs/classes.md";

function documents(): readonly Page[] {
  const files = globSync("docs/**/*.md")
    .filter((file) => file !== NOT_A_DOCUMENT)
    .toSorted();
  const pages = files.map(documentPage);
  const links = pages.map(
    ({ path, title }) => `<li><a href="${posix.relative("docs", path)}/">${escaped(title)}</a></li>`,
  );
  const overview: Page = {
    path: "docs/",
    title: "Documents",
    format: "html",
    content: `<ul>\n${links.join("\n")}\n</ul>`,
  };
  return [overview, ...pages];
}

function documentPage(file: string): Page {
  const [heading = "", ...rest] = readFileSync(file, "utf8").split("\n");
  const path = pathOfDocument(file);
  return { path, title: heading.replace(/^# /, ""), format: "md", content: withSiteLinks(rest.join("\n"), file, path) };
}

function pathOfDocument(file: string): string {
  return file === NOT_A_DOCUMENT ? "classes/" : `${file.replace(/(?:\/README)?\.md$/, "")}/`;
}

/**
 * Links from document to document, from the page of one to that of the other; links to files of the repository, which
 * the site does not have, become text.
 */
export function withSiteLinks(text: string, file: string, path: string): string {
  return text.replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (all, image: string, label: string, target: string) => {
    if (/^(?:[a-z]+:|#)/.test(target)) return all;
    const [named = "", anchor] = target.split("#");
    const linked = join(posix.dirname(file), named);
    if (image !== "" || !linked.startsWith("docs")) return label;
    if (linked.endsWith(".json")) return `[${label}](${relative(path, linked)})`;
    if (!linked.endsWith(".md")) return linked === "docs/runbooks" ? `[${label}](${relative(path, "docs/")})` : label;
    const place = anchor === undefined ? "" : anchorIn(linked, anchor);
    return `[${label}](${relative(path, pathOfDocument(linked))}${place})`;
  });
}

/** A class has a page of its own, so the section of the combined page is that page. */
function anchorIn(file: string, anchor: string): string {
  const id = /^[a-z]\d+-(.+)$/.exec(anchor)?.[1];
  return file === NOT_A_DOCUMENT && id !== undefined ? `${id}/` : `#${anchor}`;
}

function relative(from: string, to: string): string {
  const found = posix.relative(`/${from}`, `/${to}`);
  return to.endsWith("/") ? `${found === "" ? "." : found}/` : found;
}
