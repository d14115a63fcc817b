# SPDX-License-Identifier: Apache-2.0
# The commands of this repository; `make help` lists them. The build itself is CMake's: CMakeLists.txt.

BUILD  ?= build
PREFIX ?= /usr/local
PYTHON ?= python3
JOBS   ?= $(shell nproc)
# WERROR=1 makes every warning an error.
WERROR ?= 0

VENV     := .venv
CMAKE    := cmake
REQUIRE  := ci/packages.sh require
# Compilations are cached where ccache is there, which may be only after packages were installed.
LAUNCHER  = $${CMAKE_CXX_COMPILER_LAUNCHER:-$$(command -v ccache)}
CACHED    = CMAKE_C_COMPILER_LAUNCHER=$(LAUNCHER) CMAKE_CXX_COMPILER_LAUNCHER=$(LAUNCHER)
# Warnings and errors go to stderr.
CONFIGURE = $(CACHED) $(CMAKE) -S . -B $(BUILD) --log-level=WARNING -DCMAKE_BUILD_TYPE=Release >/dev/null \
            -DTRUENORM_WERROR=$(if $(filter-out 0,$(WERROR)),ON,OFF)
COMPILE   = $(CMAKE) --build $(BUILD) --parallel $(JOBS)
CTEST     = $(CACHED) ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --parallel $(JOBS)
PYTEST    = $(CACHED) TRUENORM_BIN=$(abspath $(BUILD))/cli $(VENV)/bin/python -m pytest -q $(PYTEST_ARGS)

export PYTHON
# Read by CMake when it first configures a folder, pip's build folders included.
export CMAKE_GENERATOR ?= Ninja
# The library, the Python package and the tests' projects compile the same kernels; clones in other folders share them.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Packages that are missing are installed first (Debian, as root; elsewhere they are named)."
	@echo "Settings: PREFIX=$(PREFIX) PYTHON=$(PYTHON) BUILD=$(BUILD) JOBS=$(JOBS) WERROR=$(WERROR)"

# ---------------------------------------------------------------- C and C++
.PHONY: demo
demo: ## Normalize the real activations in data/, and show the worked examples
	@$(REQUIRE) build cli
	@test -f $(BUILD)/CMakeCache.txt || { echo "Building the library and its command in $(BUILD)/ (a few minutes, once)" && \
	  $(CONFIGURE) -DTRUENORM_BUILD_TESTS=OFF; }
	@$(COMPILE) --target truenorm-demo truenorm-cli
	@$(BUILD)/cli/truenorm-demo data
	@echo; echo "The command is $(BUILD)/cli/truenorm: try \`$(BUILD)/cli/truenorm explain 1 2 3 4\`, or --help."

.PHONY: build
build: ## Build the library, the command and the C++ tests
	@$(REQUIRE) build cli test
	@$(CONFIGURE) -DTRUENORM_BUILD_TESTS=ON
	@$(COMPILE)

.PHONY: install
install: ## Install the library and the command under PREFIX
	@$(REQUIRE) build cli
	@test -f $(BUILD)/CMakeCache.txt || $(CONFIGURE) -DTRUENORM_BUILD_TESTS=OFF
	@$(COMPILE)
	@$(CMAKE) --install $(BUILD) --prefix $(PREFIX)
	@# The loader keeps a list of what lies in /usr/local/lib.
	@test "$$(id -u)" -ne 0 || ! command -v ldconfig >/dev/null || ldconfig

# BENCH_ARGS= for the whole grid (an hour); bench/run.py --help lists what else there is.
BENCH_ARGS ?= --quick
.PHONY: bench
bench: ## Time forward and backward beside a copy of the same bytes and beside other libraries
	@$(REQUIRE) build cli python bench
	@$(MAKE) --no-print-directory $(VENV)/.package $(VENV)/.bench
	@$(CACHED) $(CMAKE) -S . -B $(BUILD)/bench --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DTRUENORM_BUILD_BENCH=ON \
	  -DTRUENORM_BUILD_TESTS=OFF -DTRUENORM_BENCH_PREFIX=$(abspath $(VENV))
	@$(CMAKE) --build $(BUILD)/bench --parallel $(JOBS) --target bench_runners
	@$(VENV)/bin/python bench/run.py --build $(BUILD)/bench $(BENCH_ARGS)

.PHONY: error-table
error-table: ## Measure errors beside other libraries and renew the tables in docs/numerics.md
	@$(REQUIRE) build python
	@$(MAKE) --no-print-directory $(VENV)/.package $(VENV)/.bench
	@$(VENV)/bin/python bench/error_table.py --write

# ---------------------------------------------------------------- tests
.PHONY: test
test: test-cpp test-python ## Run all tests but the whole grid

.PHONY: test-full
test-full: export TRUENORM_TEST_FULL = 1
test-full: test ## Run all tests on the whole grid of cases (an hour or more)

.PHONY: test-cpp
test-cpp: build ## Run the tests of the library, and print the worst errors they found
	@$(CTEST)
	@echo "Worst errors found, in the units of docs/numerics.md:"
	@sh tests/worst_errors.sh $(BUILD)/tests/worst | cut -c 1-90

# The folders of the tests that pytest runs; the command's tests run the programs in $(BUILD)/cli.
PYTEST_FOLDERS := $(wildcard tests/python tests/cli tests/docs)

.PHONY: test-python
test-python: build python ## Run the tests of the Python package, the command and the documents
	@$(PYTEST) $(PYTEST_FOLDERS)

# ---------------------------------------------------------------- Python, in a virtual environment of its own
.PHONY: python
python: ## Install the Python package and what its tests need into .venv
	@$(REQUIRE) build cli python
	@$(MAKE) --no-print-directory $(VENV)/.package

PACKAGE_SOURCES := $(shell find include src cmake python cli -type f ! -name '*.pyc') \
                   $(wildcard CMakeLists.txt pyproject.toml README.md LICENSE)

# A list of requirements into the environment, and a file that says when.
define install_requirements
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), from $<:"
	@sed '/^#/d; /^$$/d; s/^/  /' $<
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@
endef

$(VENV)/.requirements: tests/python/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else \
	  "Python 3.10 or newer is needed; $(PYTHON) is " + sys.version.split()[0] + " (PYTHON=... chooses another)")'
	$(install_requirements)

$(VENV)/.bench: bench/requirements.txt $(VENV)/.requirements
	$(install_requirements)

$(VENV)/.package: $(PACKAGE_SOURCES) $(VENV)/.requirements
	@echo "Installing the package truenorm into $(VENV)"
	@$(CACHED) $(VENV)/bin/python -m pip install -qq --disable-pip-version-check \
	  --config-settings=cmake.define.TRUENORM_WERROR=$(if $(filter-out 0,$(WERROR)),ON,OFF) .
	@touch $@

.PHONY: clean
clean: ## Remove what these commands made: the folders build and .venv
	rm -rf $(BUILD) $(VENV)
