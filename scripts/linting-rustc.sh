#!/usr/bin/env bash
# rustc with Clippy's lints for the workspace's crates (RUSTC_WORKSPACE_WRAPPER). Warnings are errors.
exec clippy-driver "$@" -D warnings
