import { defineConfig } from "vitest/config";

/** For `make mutation`: the unit tests of the module that scripts/mutation mutates at the moment. */
export default defineConfig({
  test: {
    include: (process.env["MUTATION_TESTS"] ?? "").split(",").filter(Boolean),
    isolate: false,
    setupFiles: ["test/support/property-seed.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
