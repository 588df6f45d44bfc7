#!/usr/bin/env bash
# rustc for the crates of the workspace (RUSTC_WORKSPACE_WRAPPER), with Clippy's lints; each warning is an error.
exec clippy-driver "$@" -D warnings
