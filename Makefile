# A front to CMake. Every target first installs the Debian packages that it needs (scripts/need).
#
#   BUILD=folder (build)   PREFIX=folder (/usr/local)   DESTDIR=folder   JOBS=number (one per core)

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

# The make that CMake runs is one of its own: its number of jobs is JOBS.
alone = env -u MAKEFLAGS -u MAKELEVEL
configure = $(alone) cmake --preset release -B $(BUILD) --log-level=WARNING >/dev/null
compile = $(alone) cmake --build $(BUILD) --parallel $(JOBS)

.PHONY: all demo examples check chaos python wheel deb bench bench-convergence install format lint clean help

all: ## build the program (build/hfsad) and the libraries
	@scripts/need build
	@$(configure)
	@$(compile) --target product

demo: ## run the paper's experiment and plot it into build/demo
	@scripts/need demo
	@$(configure)
	@$(compile) --target product
	$(BUILD)/hfsad paper --out $(BUILD)/demo
	@echo "pictures: $$(ls $(BUILD)/demo/*.png | tr '\n' ' ')"

examples: ## run the commands of README.md and examples/ and update their outputs
	@scripts/need examples
	@$(configure)
	@$(compile) --target product
	scripts/examples $(BUILD)/hfsad --refresh

check: ## build and run all tests
	@scripts/need test
	@$(configure) -DHFSAD_TESTS=ON
	@$(compile)
	@$(alone) ctest --test-dir $(BUILD) --parallel $$(($(JOBS) * 2)) --output-on-failure --no-tests=error

python: ## build the Python package: PYTHONPATH=build/python
	@scripts/need python
	@$(configure)
	@$(compile) --target python_package
	@echo "import it with: PYTHONPATH=$(abspath $(BUILD))/python"

wheel: python ## build an installable wheel in build/wheel
	@scripts/need wheel
	@rm -rf $(BUILD)/wheel $(BUILD)/wheel-source
	@cp -r python $(BUILD)/wheel-source
	@cd $(BUILD)/wheel-source && HFSAD_BUILT=yes HFSAD_ROOT=$(CURDIR) HFSAD_BUILD=$(abspath $(BUILD)) $(alone) /usr/bin/python3 -m build --wheel \
	    --no-isolation --outdir $(abspath $(BUILD))/wheel . >build.log 2>&1 || { cat build.log; false; }
	@ls $(BUILD)/wheel/*.whl

deb: python ## build Debian packages in build/deb: program, libraries, headers, Python module
	@scripts/need deb
	@$(compile) --target product
	@scripts/deb $(BUILD)

chaos: ## random federations, killed, stopped, frozen, robbed of states, asynchronous, for MINUTES=number (60)
	@scripts/need test
	@$(configure)
	@$(compile) --target product
	tests/random_federations.py --program $(BUILD)/hfsad --seconds $$(($(or $(MINUTES),60) * 6))

bench: ## measure speed and memory, compared with the limits of the machine
	@scripts/need bench
	@$(configure)
	@$(compile) --target product benchmarks
	bench/run $(ARGS)

bench-convergence: ## measure how many iterations, rounds and bytes each method needs (hours; ARGS=--quick: seconds)
	@scripts/need build
	@$(configure)
	@$(compile) --target bench_convergence
	$(BUILD)/bench/convergence $(ARGS)

install: ## install into PREFIX (/usr/local), below DESTDIR if it is set
	@scripts/need build
	@$(configure) -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX))
	@$(compile) --target product
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

format: ## rewrite all C files by clang-format
	@scripts/need format
	@scripts/format

lint: ## clang-format, clang-tidy and, if installed, cppcheck
	@scripts/need lint
	@$(configure)
	@scripts/lint $(BUILD)

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20
