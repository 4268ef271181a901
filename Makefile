# ungrain: every command a newcomer needs. Thin: the work is in CMake presets and tools/.
#   make demo   render a scene, add noise, denoise it; pictures in build/demo
#   make test   build everything and run every test
#   make bench  times on this machine beside OpenCV and scikit-image; QUICK=1 in a minute, RECORD=1 into docs/results
# They install what is missing first (Debian's packages, with sudo where it is needed) and say what they install.
SHELL := /bin/bash
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

.PHONY: all setup build demo test bench sanitize fuzz lint format docs install wheel packages check-packages clean site integrations wasm
all: build

setup:
	@tools/setup

build: setup
	@tools/build $(PRESET) $(JOBS)

demo:
	@tools/setup demo
	@tools/demo $(PRESET) $(JOBS)

test: build
	@tools/setup browser
	@tools/setup site
	@tools/test $(PRESET)

bench: build
	@tools/bench $(PRESET) $(if $(QUICK),--quick) $(if $(RECORD),--record) $(ARGS)

# The address, undefined-behaviour and thread sanitizers over all C++ tests. FAST=1: without the thread sanitizer and the slowest tests.
sanitize: setup
	@tools/setup clang
	@tools/sanitize $(JOBS) $(if $(FAST),fast)

# Damaged inputs for the parsers; FUZZ_SECONDS for each, 600 unless told.
fuzz: setup
	@tools/setup clang
	@tools/fuzz $(FUZZ_SECONDS) $(ARGS)

lint: setup
	@tools/setup clang
	@tools/lint

format:
	@tools/venv build/lint-venv.log lint-venv
	@build/lint-venv/bin/clang-format -i $$(git ls-files '*.h' '*.cpp' '*.cu' '*.cuh')

docs: build
	@$(BUILD)/bin/ungrain methods --markdown > docs/methods.md
	@tools/pictures $(BUILD)/bin/ungrain

# The documents as a site, in build/site.
site: build
	@tools/setup site
	@[ -d $(BUILD)/wheel/venv ] || tools/wheel $(BUILD) $(BUILD)/wheel.log
	@tools/site $(BUILD) $(BUILD)/site.log && echo "The site is in build/site: open build/site/index.html."

# The plug-ins and scripts for other programs, in those that are there. napari and Qt come from PyPI.
integrations: build
	@[ -d $(BUILD)/wheel/venv ] || tools/wheel $(BUILD) $(BUILD)/wheel.log
	@tools/integrations $(BUILD)

install: build
	@cmake --install $(BUILD)

# A wheel for other machines; CUDA=all-major for GPUs too. tools/release-wheel says what else can be chosen.
wheel: setup
	@tools/release-wheel $(PYTHON)

# The page that denoises pictures in a browser: build/wasm/ungrain.html. TESTS=1: C++ tests in node, too.
wasm:
	@tools/setup wasm
	@tools/wasm $(JOBS) $(if $(TESTS),tests)

# Debian packages, and their trial in a bare system of their own (as root, with debootstrap).
packages: setup
	@tools/packages $(JOBS)

check-packages:
	@tools/check-packages

clean:
	rm -rf build
