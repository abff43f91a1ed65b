import { expect, test } from "vitest";
import { commandLine } from "../../src/cli/command-line.ts";

test("a command repeats flags and targets as they were given, quoted for a shell", () => {
  const command = commandLine(
    { only: ["shim-leak", "pod-gone"], allDead: true, noKick: false, minAge: undefined, hostRoot: "/mnt/the node" },
    ["shop/it's"],
    {},
  );

  expect(command("heal", "--dry-run")).toBe(
    String.raw`unghost heal 'shop/it'\''s' --only shim-leak --only pod-gone --all-dead --host-root '/mnt/the node' --dry-run`,
  );
});

test("a command printed in the agent's pod runs there through kubectl", () => {
  const command = commandLine({}, [], { POD_NAME: "unghost-x7k2p", POD_NAMESPACE: "unghost" });

  expect(command("heal")).toBe("kubectl --namespace unghost exec -it unghost-x7k2p -- unghost heal");
});
