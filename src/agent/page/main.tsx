import { render } from "preact";
import { App, PAGE_VERSION } from "./app.tsx";
import { goLive, live } from "./live.ts";
import { labelTab } from "./tab.ts";
import { pageVerdict, shouldReload } from "./verdict.ts";

const root = document.getElementById("page");
if (root === null) throw new Error("the document has no element #page: it was not made by scripts/build-page.ts");
// What stands there until now is for the moment before the first script runs.
root.replaceChildren();

/** All of it each time: it is a few hundred elements, and a library that knows which ones changed is larger than they are. */
function draw(place: HTMLElement): void {
  const { state, link } = live();
  render(<App />, place);
  if (state === undefined) return;
  labelTab(state.node, pageVerdict(state), link.kind === "lost");
  if (shouldReload(PAGE_VERSION, state.version, sessionStorage)) location.reload();
}

draw(root);
goLive(() => draw(root));
