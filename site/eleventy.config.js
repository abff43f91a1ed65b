import { anchorOf } from "../scripts/site/html.ts";

export default function configure(eleventy) {
  // The pages are below dist/, which git ignores.
  eleventy.setUseGitIgnore(false);
  eleventy.amendLibrary("md", (markdown) => markdown.core.ruler.push("anchors", anchors));
}

export const config = {
  dir: { input: "dist/site-pages", output: "dist/site", includes: "../../site" },
  // Braces in documents are braces.
  markdownTemplateEngine: false,
  htmlTemplateEngine: false,
};

function anchors({ tokens }) {
  for (const [index, token] of tokens.entries()) {
    const text = tokens[index + 1]?.children?.map(({ content }) => content).join("") ?? "";
    if (token.type === "heading_open") token.attrSet("id", anchorOf(text));
  }
}
