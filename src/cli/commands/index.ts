import { buildRouteMap } from "@stricli/core";
import { boot } from "./boot.ts";
import type { Context } from "./context.ts";
import { explain } from "./explain.ts";
import { heal } from "./heal.ts";
import { history } from "./history.ts";
import { install } from "./install.ts";
import { scan } from "./scan.ts";
import { undo } from "./undo.ts";
import { uninstall } from "./uninstall.ts";

export const routes = buildRouteMap<string, Context>({
  routes: { scan, heal, explain, boot, history, undo, install, uninstall },
  docs: { brief: "Finds and heals ghost pod sandboxes on Kubernetes nodes" },
});
