# The verbs of this project. Each makes .venv by itself where it is missing.
# Needed on the machine: python3 (3.11 or newer), pip, make; for the tests npm too. uv is used where
# it is present.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TOOLS  := tools/npm/node_modules/.ready
GO     := tools/go/foreign

.DEFAULT_GOAL := help
.PHONY: help setup tools run demo test test-all check bench docs lock

help:           ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */\t/' | expand -t 12

setup: $(READY) ## make .venv with everything pinned in constraints.txt

$(READY): constraints.txt pyproject.toml
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/make-venv
	@touch $@

tools: $(TOOLS) $(GO) ## install the clients, checkers, node and browser that tests run (needs npm)

$(TOOLS): tools/npm/package-lock.json tools/make-test-tools
	@sh tools/make-test-tools
	@touch $@

# Without Go its verdicts are skipped, each with its reason in tests/skips.txt.
$(GO): $(READY) tools/go/foreign.go tools/go/requirements.txt tools/make-go-check
	@PYTHON="$(CURDIR)/$(BIN)/python" sh tools/make-go-check || echo "no verdicts by Go on this machine"

run: $(READY)   ## start the server and print its URL (the page, and MCP over HTTP)
	@$(BIN)/affidavit serve

demo: $(READY)  ## record a small session, verify it, edit one byte, see it caught
	@$(BIN)/python examples/demo.py

test: $(READY) $(TOOLS) $(GO) ## everything needed to trust a change (under 8 minutes on 2 cores)
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: $(READY) $(TOOLS) $(GO) ## the same with the long rounds, on every Python found (3.11, 3.13)
	@$(BIN)/python -m pytest -n 2 --dist worksteal --long
	@sh tools/test-other-pythons

check: $(READY) ## ruff, mypy, import-linter, tidy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/tidy tests/docs

bench: $(READY) ## measure beside raw SQLite (BENCH=--quick for the short one)
	@$(BIN)/python -m bench $(BENCH)

docs: $(READY)  ## write --help texts and tables into the docs again
	@$(BIN)/python -m cogapp -r README.md docs/threat-model.md docs/reference/*.md

pyz: $(READY)   ## build dist/affidavit-verify.pyz, the verifier in one file
	@$(BIN)/python tools/build_pyz.py dist/affidavit-verify.pyz

lock:           ## pin the dependencies anew, none younger than a week (needs uv)
	uv pip compile pyproject.toml --extra all --group dev --universal --python-version 3.11 --generate-hashes \
	  --exclude-newer "$$(date -u -d '7 days ago' +%FT%TZ)" --no-annotate --no-header --upgrade -o constraints.txt
