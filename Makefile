# The commands people type; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup check format schema proto system unit fuzz test before-release release-check times demo lab chaos bench scale holding hostile histories exhaustive moves told steps figures images images-compare locks audit release publish try-release skew newer-kernel systemd upgrade

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready  ## make .venv with everything that development needs

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

check: setup  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy crds daemon client operator enforcer cli page lab campaigns benchmarks tests examples release
	$(BIN)/lint-imports

format: setup  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: setup  ## write the CRDs, the rules of a spec, the chart's table of values, docs/reasons.md and docs/metrics.md from their sources
	$(BIN)/python -m numapin_api.schema crds --write charts/numapin/crd-files
	$(BIN)/python -m numapin_api.schema spec > .spec.py && mv .spec.py crds/numapin_api/schema/assignment_spec.py
	$(BIN)/python -m numapin_api.schema status > .status.py && mv .status.py crds/numapin_api/schema/assignment_status.py
	$(BIN)/python -m numapin_api.schema plain node > .plain.py && mv .plain.py crds/numapin_api/schema/plain.py
	$(BIN)/python -m numapin_api.schema plain operator > .plain.py && mv .plain.py crds/numapin_api/schema/plain_assignment.py
	$(BIN)/python -m numapin_api.schema reasons > docs/reasons.md
	$(BIN)/python docs/generate
	charts/generate

proto: setup  ## generate the messages of CRI, NRI, podresources, device plug-ins and DRA drivers from their .proto files
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I enforcer \
		--python_out=enforcer --mypy_out=quiet:enforcer --grpclib_python_out=enforcer \
		numapin_enforcer/runtime/generated/cri_v1.proto \
		numapin_enforcer/runtime/generated/podresources_v1.proto
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I enforcer \
		--python_out=enforcer --mypy_out=quiet:enforcer \
		numapin_enforcer/runtime/generated/nri_v1alpha1.proto
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I lab \
		--python_out=lab --mypy_out=quiet:lab --grpclib_python_out=lab \
		numapin_lab/devices/generated/deviceplugin_v1beta1.proto \
		numapin_lab/devices/generated/dra_v1.proto \
		numapin_lab/devices/generated/pluginregistration_v1.proto

system:
	@lab/system-packages

test: setup system  ## set up and run the tests, but for those that before-release runs as well
	PYTHONPATH=tests $(BIN)/python -m support.suite.streams --durations=30 --durations-min=5

unit: setup  ## run the tests that need neither root nor other programs
	$(BIN)/pytest tests/unit

# What reads what others have written: the runtime, the kernel, the kubelet, drivers, a person, a process that was killed.
FUZZED := $(addprefix tests/unit/,client/login/test_damaged_kubeconfig.py $(addprefix enforcer/,assignment/test_damaged_state.py assignment/test_decode.py \
	cgroups/test_damaged_files.py hardware/test_robust.py node/test_damaged_files.py podresources/test_devices.py runtime/nri runtime/test_damaged_answers.py))

fuzz: setup  ## give what reads files and answers of others more damaged ones than make test does (EXAMPLES=2000, minutes)
	NUMAPIN_TEST_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/pytest $(FUZZED)

BEFORE_RELEASE := e2e/test_chaos.py e2e/test_pods.py e2e/test_migration_vm.py e2e/test_removal.py e2e/pods/test_mode_audit.py e2e/test_vmnode.py e2e/virtual_machine integration/contract/test_release.py integration/enforcer/heartbeats integration/enforcer/start_gate integration/enforcer/virtual_machine integration/page

before-release: setup system  ## run the tests that make test leaves out, but for those of steps, systemd and newer-kernel (an hour)
	NUMAPIN_TEST_BEFORE_RELEASE=1 $(BIN)/pytest $(addprefix tests/,$(BEFORE_RELEASE))

release-check: setup system  ## run everything that no automatic run repeats, and write docs/release-check.md (a day; NAMES="steps skew": only these)
	PYTHONPATH=tests $(BIN)/python -m support.suite.release_check $(NAMES)

times: setup  ## write the times of the last `make test` into CONTRIBUTING.md
	PYTHONPATH=tests $(BIN)/python -m support.suite.page

demo: setup system  ## run the examples with numapin as pods on a real one-node Kubernetes (KEEP=1 leaves it up)
	$(BIN)/python -m numapin_campaigns demo --dir .lab-demo $(if $(KEEP),--keep)

lab: setup system  ## bring up a real one-node Kubernetes in .lab (docs/lab.md: status, down)
	$(BIN)/python -m numapin_lab up

chaos: setup system  ## kill each part while pods start and end, and count shared exclusive CPUs (PODS=200, SEED=, FROM_SOURCE=1: no images; MOVES=1: ROUNDS=20 moves)
	$(BIN)/python -m numapin_campaigns chaos $(if $(MOVES),--moves --rounds $(or $(ROUNDS),20),--pods $(or $(PODS),200) $(if $(FROM_SOURCE),--from-source)) $(if $(SEED),--seed $(SEED)) --dir .lab-chaos

SKEW_TESTS := $(addprefix tests/integration/,contract client operator) $(addprefix tests/e2e/test_,pods.py restarts.py migration.py)

skew: setup system  ## run what needs an API server or a kubelet with the oldest and the newest Kubernetes
	@set -e; for release in $(notdir $(wildcard lab/kubernetes/*)); do \
		echo "== Kubernetes $$release"; \
		NUMAPIN_LAB_KUBERNETES=$$release NUMAPIN_TEST_AS=processes $(BIN)/pytest $(SKEW_TESTS); \
	done

newer-kernel: setup system  ## run the tests in virtual machines with the kernel of Debian's backports (30 minutes)
	NUMAPIN_LAB_KERNEL=backports NUMAPIN_TEST_BEFORE_RELEASE=1 $(BIN)/pytest -m vm

SYSTEMD_TESTS := $(addprefix tests/e2e/,test_vmnode.py test_migration_vm.py virtual_machine)

systemd: setup system  ## run the tests of a node in a virtual machine with systemd as process 1 and cgroup driver
	NUMAPIN_TEST_AS=pods $(BIN)/pytest tests/e2e/virtual_machine/test_systemd_driver.py
	NUMAPIN_TEST_DRIVER=systemd NUMAPIN_TEST_AS=processes NUMAPIN_TEST_BEFORE_RELEASE=1 $(BIN)/pytest $(SYSTEMD_TESTS)

# What prints its figures by itself; with_otlp runs another one, the rest draws.
BENCHMARKS := announcing api_cost command_start discovery end_to_end enforcing fleet informer moves notice operator_latency placement scale scheduling start_gate

bench: setup system  ## run all benchmarks (ONLY="enforcing placement": only these)
	@set -e; for name in $(or $(ONLY),$(BENCHMARKS)); do echo "== $$name"; $(BIN)/python -m numapin_benchmarks.$$name; done

scale: setup system  ## measure the operator with 500 to 5,000 nodes (an hour, 12 GiB of memory)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m numapin_benchmarks.scale --nodes 500,1000,2000,5000 --output docs/images/scale.json
	$(BIN)/python -m numapin_benchmarks.scale.plot docs/images/scale.json

holding: setup system  ## place 500 random pods on 50 played nodes: held, shared, and refused by kubelets; drawn (PODS=, NODES=, SEED=)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m numapin_campaigns holding --pods $(or $(PODS),500) --nodes $(or $(NODES),50) $(if $(SEED),--seed $(SEED)) --output docs/images/holding.json
	$(BIN)/python -m numapin_benchmarks.holding_plot docs/images/holding.json

hostile: setup system  ## an hour of random valid and hostile objects against the operator
	$(BIN)/python -m numapin_campaigns hostile --minutes 60

histories: setup  ## search random histories for a write that breaks an invariant (COUNT=10000 of each kind)
	$(BIN)/python -m numapin_campaigns histories --count $(or $(COUNT),10000) $(if $(FROM),--from $(FROM))

exhaustive: setup  ## play every history of tiny nodes: each pair of specs, each start state, each single fault (ONLY=a class, SHARD=1/4, STATE=FILE; hours)
	$(BIN)/python -m numapin_campaigns exhaustive $(if $(ONLY),--only "$(ONLY)") $(if $(SHARD),--shard $(SHARD)) --state $(or $(STATE),.exhaustive.json)

moves: setup  ## what moving containers gains, drawn; and searches compared with every way to move (COUNT=3000)
	$(BIN)/python -m numapin_benchmarks.moves --check $(or $(COUNT),3000)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m numapin_benchmarks.moves --output docs/images/moves.json
	$(BIN)/python -m numapin_benchmarks.moves.plot docs/images/moves.json

told: setup system  ## does a workload see that CPUs will leave before they do? 100 moves in a virtual machine (COUNT=, NOTICE=2s)
	$(BIN)/python -m numapin_campaigns told --moves $(or $(COUNT),100) --notice $(or $(NOTICE),2s) --dir .lab-told

steps: setup system  ## kill every choice of operator, enforcer and standby at each step of a resize and of a move (an hour)
	NUMAPIN_TEST_STEPS=all $(BIN)/pytest tests/e2e/pods/test_resize_steps.py tests/e2e/virtual_machine/test_move_steps.py

upgrade: setup system  ## replace each part by that of another commit and back while a pod is pinned (FROM=a tag or commit)
	$(BIN)/python -m numapin_campaigns upgrade --from $(or $(FROM),$(error set FROM to a tag or a commit)) --dir .lab-upgrade

images:  ## build the images of operator and enforcer (BASE=, TAG=, OUTPUT=; needs buildah)
	images/build $(if $(BASE),--base $(BASE)) $(if $(TAG),--tag $(TAG)) $(if $(OUTPUT),--output $(OUTPUT))

images-compare: setup system  ## build the images of HEAD twice, and show what differs (10 minutes)
	$(BIN)/python release/compare_images.py

# uv is pinned, so that the same index gives the same locks.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make locks' --upgrade

locks: setup  ## write the exact versions and hashes of what the images and the plug-in of kubectl contain
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv==0.13.*'
	$(LOCK) images/tools.in --output-file images/tools.lock
	$(LOCK) pyproject.toml --extra operator --extra otlp --output-file images/operator.lock
	$(LOCK) pyproject.toml --extra enforcer --extra otlp --output-file images/enforcer.lock
	$(LOCK) pyproject.toml --extra cli --extra login --output-file release/kubectl-plugin.lock

audit: setup  ## ask which packages that are shipped have known vulnerabilities (status 3: not all could be asked about)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.10,<3'
	$(BIN)/python release/audit.py

figures: setup system  ## measure enforcing on this machine, and draw the pictures in docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m numapin_benchmarks.enforcing --output docs/images/enforcing.json
	$(BIN)/python -m numapin_benchmarks.enforcing.plot docs/images/enforcing.json

release: setup  ## build what a release consists of in dist/ (REGISTRY=, DOWNLOADS=, BASE=, NO_IMAGES=1; release/build.py --help)
	$(BIN)/python release/build.py $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(DOWNLOADS),--downloads $(DOWNLOADS)) $(if $(BASE),--base $(BASE)) \
		$(if $(NO_IMAGES),--no-images) $(if $(OUTPUT),--output $(OUTPUT))

publish: setup  ## push a release and the images of each architecture to a registry (RELEASE=, REGISTRY=, AMD64=, ARM64=, SIGN=1; release/publish.py --help)
	$(BIN)/python release/publish.py $(or $(RELEASE),$(error set RELEASE to the folder of a release)) --registry $(or $(REGISTRY),$(error set REGISTRY)) \
		$(if $(AMD64),--images amd64=$(AMD64)) $(if $(ARM64),--images arm64=$(ARM64)) $(if $(SIGN),--sign) $(if $(OUTPUT),--output $(OUTPUT))

try-release: setup system  ## install the release in RELEASE=DIR from its files alone, in a new lab
	$(BIN)/python release/try_release.py $(or $(RELEASE),$(error set RELEASE to the folder of a release))
