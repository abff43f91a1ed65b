import { build } from "esbuild";
import { catalogueWithoutDetection } from "./catalogue.ts";

/** The script of the page that explains error lines. It requests nothing, and has no code that could. */
export async function explainScript(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: ["site/explain.ts"],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    platform: "browser",
    target: ["es2023", "chrome123", "firefox121", "safari17.4"],
    legalComments: "none",
    plugins: [catalogueWithoutDetection],
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error("esbuild made nothing of site/explain.ts");
  return file.text;
}
