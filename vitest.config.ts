import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    reporters: ["default", "./test/support/closing-line.ts"],
    projects: [
      {
        test: {
          name: "unit",
          sequence: { groupOrder: 0 },
          include: ["test/**/*.test.ts"],
          exclude: [
            "test/e2e/**",
            "test/lab/**",
            "test/cluster/**",
            "test/floods/**",
            "test/multus/**",
            "test/guarded/**",
            "test/release/**",
            "test/runtimes/**",
            "test/sessions/**",
            "test/site/**",
            "test/systemd/**",
            "test/crio/**",
          ],
          isolate: false,
          setupFiles: ["test/support/property-seed.ts"],
          // Hang guards, not measurements: the machines are shared, and a test may leave 20,000 files to remove.
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "e2e",
          // After the unit tests: both share the machine's two cores.
          sequence: { groupOrder: 1 },
          include: ["test/e2e/**/*.test.ts", "test/lab/**/*.test.ts"],
          // Each file starts nodes of its own, and mostly waits for them.
          maxWorkers: 3,
          // Real runtimes on shared machines. What passes at the second try only is named at the end of the run.
          retry: process.env["CI"] === undefined ? 0 : 1,
          testTimeout: 180_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make sessions` alone: each width breaks and heals a node of its own.
          name: "sessions",
          sequence: { groupOrder: 2 },
          include: ["test/sessions/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 900_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make runtime-test` alone, on every containerd of the lab's table.
          name: "runtimes",
          sequence: { groupOrder: 2 },
          include: [
            "test/runtimes/**/*.test.ts",
            "test/lab/faults.test.ts",
            "test/e2e/{diagnosis-*,heal-blocked}.test.ts",
          ],
          maxWorkers: 2,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make multus-test` alone: every containerd with thick and thin multus takes its time.
          name: "multus",
          sequence: { groupOrder: 2 },
          include: ["test/multus/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make flood-test` alone: nothing else on the machine can start many processes meanwhile.
          name: "floods",
          sequence: { groupOrder: 2 },
          include: ["test/floods/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make site-test` alone, which builds dist/site first.
          name: "site",
          sequence: { groupOrder: 2 },
          include: ["test/site/**/*.test.ts"],
          testTimeout: 180_000,
        },
      },
      {
        test: {
          // Started by `make guard-test` alone: storms, outages and kills take their time.
          name: "guard",
          sequence: { groupOrder: 2 },
          include: ["test/guarded/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 900_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
      {
        test: {
          // Started by `make release-test` alone: it builds everything twice.
          name: "release",
          sequence: { groupOrder: 2 },
          include: ["test/release/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 900_000,
        },
      },
      {
        test: {
          // Started by `make boot-test` alone, which first makes sure that systemd can be booted here.
          name: "systemd",
          sequence: { groupOrder: 2 },
          include: ["test/systemd/**/*.test.ts"],
          maxWorkers: 2,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          // Started by `make crio-test` alone, which first makes sure that CRI-O can run here.
          name: "crio",
          sequence: { groupOrder: 2 },
          include: ["test/crio/**/*.test.ts"],
          maxWorkers: 2,
          testTimeout: 900_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          // Started by `make cluster-test` alone, which first makes sure that a cluster can run here.
          name: "cluster",
          sequence: { groupOrder: 2 },
          include: ["test/cluster/**/*.test.ts"],
          // Each file has clusters of its own, and mostly waits for kubelet.
          maxWorkers: 4,
          testTimeout: 900_000,
          hookTimeout: 600_000,
          globalSetup: ["test/support/lab-tools.ts"],
        },
      },
    ],
  },
});
