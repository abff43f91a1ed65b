import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.tsx";
import { PAGE_VERSION } from "./built-in.ts";
import { goLive, link, state } from "./live.ts";
import { labelTab } from "./tab.ts";
import { verdictOf } from "./verdict.ts";
import { adviseVersion } from "./version.ts";

const root = document.getElementById("page");
if (root === null) throw new Error("the document has no element #page: it was not made by scripts/build-page.ts");
// What stands there until now is for the moment before the first script runs.
root.replaceChildren();
render(<App />, root);

effect(() => {
  const agent = state.value?.version;
  if (agent !== undefined && adviseVersion(PAGE_VERSION, agent, sessionStorage) === "reload") location.reload();
});
effect(() => {
  if (state.value !== undefined) labelTab(state.value.node, verdictOf(state.value), link.value.kind === "lost");
});
goLive();
