# Everything a fresh Debian 12 with Node 20 and npm needs is set up by the targets themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup gen build lint test unit e2e cluster-test boot-test multus-test explain-test sessions picture mutation release release-test packages library talos image demo bench power-cuts chaos soak docs clean
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

# The status page shares a few words with the rest.
PAGE_SOURCES = $(shell find src/agent/page -type f -not -path '*/gen/*') \
	src/evidence/pending.ts src/host/text.ts src/report/node-state.ts src/report/pending.ts src/report/words.ts

help: ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

node_modules/.ready: package.json package-lock.json
	@# Not `npm ci`: it refuses a lock that lacks the packages of other platforms, which not every registry mirror has.
	npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

src/runtime/gen/.ready: node_modules/.ready buf.gen.yaml $(shell find proto -name '*.proto')
	buf generate
	@touch $@

src/agent/page/gen/.ready: src/runtime/gen/.ready package.json scripts/build-page.ts $(PAGE_SOURCES)
	node scripts/build-page.ts
	@touch $@

setup: node_modules/.ready src/runtime/gen/.ready src/agent/page/gen/.ready ## npm packages and generated code

gen: src/runtime/gen/.ready src/agent/page/gen/.ready

build: dist/unghost ## dist/unghost, one executable file

dist/unghost: node_modules/.ready src/runtime/gen/.ready src/agent/page/gen/.ready package.json scripts/build.ts $(shell find src lab -name '*.ts' -not -path '*/gen/*') $(wildcard src/guard/launcher/*)
	node scripts/build.ts

lint: setup ## types, lint, format, unused code, direction of imports, plain words, generated documents
	tsc -p .
	tsc -p src/agent/page
	tsc -p site
	oxlint --type-aware --quiet src lab test bench scripts site/explain.ts
	biome check --error-on-warnings .
	knip
	node scripts/check-direction.ts
	node scripts/check-words.ts
	node scripts/class-docs.ts --check
	node scripts/config-docs.ts --check
	node scripts/report-schema.ts --check
	node scripts/prometheus-rule.ts --check
	node scripts/man-page.ts --check
	node scripts/chart-schema.ts --check
	node scripts/chart-readme.ts --check
	node scripts/tested-with.ts --check

test: setup build lint ## everything; prints "N passed, N failed" at the end
	vitest run --project unit --project e2e

unit: setup ## unit tests only
	vitest run --project unit

explain-test: export UNGHOST_VARIANTS := 150000
explain-test: setup ## known errors in 150,000 forms that people paste them in
	vitest run --project unit test/explain/generated.test.ts

e2e: export UNGHOST_LAB_RUNTIME := $(RUNTIME)
e2e: setup build ## end-to-end tests on a real node, with the built executable; RUNTIME=1.7,2.2: on these containerds
	vitest run --project e2e

cluster-test boot-test crio-test: export UNGHOST_LAB_ALL := $(ALL)
cluster-test: setup build image ## stories on a real control plane and kubelet, ALL=1: each on every containerd and on cgroup v1, too; ends with "Error 77" where none can run
	node scripts/cluster-test.ts

boot-test: setup build ## the boot hook on nodes that a real systemd boots, ALL=1: on cgroup v1, too; ends with "Error 77" where none can run
	node scripts/boot-test.ts

.PHONY: crio-test
crio-test: setup build ## scan, heal and explain on a real CRI-O, ALL=1: on cgroup v1, too; ends with "Error 77" where none can run
	node scripts/crio-test.ts

.PHONY: runtime-test
runtime-test: export UNGHOST_LAB_RUNTIME := $(RUNTIME)
runtime-test: setup build ## how each release of containerd behaves, and heal on each; RUNTIME=1.7,2.2 choose some
	node scripts/runtime-test.ts

multus-test: setup build ## thick and thin multus on containerd 1.6, 2.1 and 2.3
	vitest run --project multus

.PHONY: flood-test
flood-test: setup build ## scan, boot and agent beside 50,000 processes, or as many as the machine has room for
	vitest run --project floods

.PHONY: guard-test
guard-test: setup build ## the CNI guard in outages, storms, kills and on full disks; conformance
	vitest run --project guard

sessions: setup build ## what people see in a terminal, against test/sessions/golden; RECORD=1 records it again
	vitest run --project sessions $(if $(RECORD),-u)

picture: setup build ## docs/images/session.svg, recorded from a real run on a lab node
	node scripts/session-picture.ts

release: setup ## dist/release: archives for x64 and arm64, glibc and musl; SHA-256 sums, SBOM, licences
	node scripts/release.ts

image: setup ## dist/image: the container image for amd64 and arm64 as an OCI layout, and as one archive
	node scripts/image.ts

packages: release ## dist/packages: .deb and .rpm for amd64 and arm64, as a repository for apt and dnf; needs Go
	node scripts/packages.ts

library: setup ## dist/unghost-VERSION.tgz: failure classes, explain and report types as an npm package
	node scripts/library.ts

.PHONY: site site-test
site: setup site/node_modules/.ready ## dist/site: a page for each failure class, an index of error texts, explain in the browser; static files for any web server
	node scripts/site.ts

site-test: site ## dist/site in a real browser
	vitest run --project site

site/node_modules/.ready: site/package.json site/package-lock.json
	cd site && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

talos: setup ## dist/talos: the system extension for Talos as an OCI layout, and its machine-config patch
	node scripts/talos.ts

.PHONY: publish
publish: setup ## pushes what release, image and talos built to RELEASE_HOST; prints each with its digest
	@node scripts/publish.ts

release-test: build release image packages library talos ## the release is reproducible, and runs on the machines it is for
	vitest run --project release

mutation: setup ## mutation testing of the safety-critical modules into docs/mutation.md; MODULES="liveness steps" choose some
	nice -n 10 node scripts/mutation/main.ts $(MODULES)

.PHONY: story-mutation
story-mutation: setup build ## each story in the lab on a build that breaks what it is about: it has to fail; STORIES="power-cut crio" choose some
	node scripts/mutation/stories.ts $(STORIES)

demo: setup build ## a power cut under a real node, step by step; CLUSTER=1: in a real cluster, where Go is found
	@node lab/demo.ts $(if $(CLUSTER),--cluster)

.PHONY: lab
lab: export RUN := $(RUN)
lab: setup build ## a shell on a broken node: FAULT=list, or FAULT=multus-deadlock PODS=10 RUNTIME=2.3 RUN='unghost scan'
	@node lab/shell.ts --fault="$(FAULT)" --pods="$(PODS)" --runtime="$(RUNTIME)" --run="$$RUN"

bench: setup build ## speed and memory, side by side with crictl where it can be had
	node bench/main.ts

power-cuts: setup build ## torn files and lost pods over true power cuts, with and without unghost; CUTS=n SEED=n
	node bench/power-cuts-run.ts $(or $(CUTS),30) $(or $(SEED),1)

.PHONY: dead-node
dead-node: setup build ## scan, heal and agent beside 2,000 dead sandboxes on a real node, beside crictl; COUNT=n RUNTIME=2.3
	node bench/dead-node.ts $(or $(COUNT),2000) $(or $(RUNTIME),2.3)

.PHONY: crash-points
crash-points: setup build ## a power cut after every single write of a heal, an undo and a boot, on ext4, xfs and btrfs; PODS=n EVERY=n
	node bench/crash-points.ts $(or $(PODS),24) $(or $(EVERY),1)

chaos: setup build ## 200 rounds of random faults on real nodes; ROUNDS=n SEED=n choose others
	node bench/chaos.ts $(or $(ROUNDS),200) $(SEED)

soak: setup build ## a day of random faults against an agent on a simulated node; FAULTS=n SEED=n choose others
	node bench/agent-soak.ts $(or $(FAULTS),10000) $(SEED)

docs: setup ## regenerate docs/classes.md, the tables of docs/configuration.md, docs/schema, the PrometheusRule and the schema of the chart
	node scripts/class-docs.ts
	node scripts/config-docs.ts
	node scripts/report-schema.ts
	node scripts/prometheus-rule.ts
	node scripts/man-page.ts
	node scripts/chart-schema.ts
	node scripts/chart-readme.ts
	node scripts/tested-with.ts

clean: ## remove what was built and downloaded
	rm -rf dist .cache src/runtime/gen src/agent/page/gen node_modules site/node_modules coverage
