import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Links of the built site that lead nowhere: to a file that it does not have, or to a section that the page lacks. */
export function brokenLinks(site: string): readonly string[] {
  const pages = globSync("**/*.html", { cwd: site }).toSorted();
  const ids = new Map<string, ReadonlySet<string>>();
  const idsOf = (page: string): ReadonlySet<string> => {
    const known =
      ids.get(page) ??
      new Set([...readFileSync(join(site, page), "utf8").matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id));
    ids.set(page, known);
    return known;
  };
  return pages.flatMap((page) => {
    const links = [...readFileSync(join(site, page), "utf8").matchAll(/ (?:href|src)="([^"]*)"/g)].map(
      ([, link = ""]) => link,
    );
    return links.flatMap((link) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : fileAt(site, join(dirname(page), path));
      if (target === undefined) return [`${page}: ${link} does not exist`];
      const isThere = anchor === undefined || idsOf(target).has(anchor);
      return isThere ? [] : [`${page}: ${link} names a section that ${target} does not have`];
    });
  });
}

function fileAt(site: string, path: string): string | undefined {
  const file =
    existsSync(join(site, path)) && statSync(join(site, path)).isDirectory() ? join(path, "index.html") : path;
  return existsSync(join(site, file)) ? file : undefined;
}
