//! Checks the dependencies between crates by Cargo's metadata. Domain crates get the runtime, the network, clocks and
//! randomness through parameters and traits. `clippy.toml` rejects the standard library's clock and network in them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_types, reason = "asks Cargo")]

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

/// Crates that may use the runtime's interfaces: the crate that implements traits on Cloudflare's runtime, and the
/// workers.
const RUNTIME: [&str; 4] = ["edge", "surety-api", "surety-watcher", "surety-arbiter"];
/// Crates that run on people's own machines.
const TOOLS: [&str; 3] = ["xtask", "surety-cli", "provider"];
/// Crates with the runtime's interfaces, which only [`RUNTIME`] may use.
const OF_THE_RUNTIME: [&str; 6] = ["worker", "worker-sys", "wasm-bindgen", "wasm-bindgen-futures", "js-sys", "web-sys"];
/// Functions that neither a domain crate nor a worker may use, because edge provides clock, randomness and network.
const OUTSIDE: [&str; 13] = [
    "getrandom",
    "rand",
    "rand_core",
    "uuid",
    "chrono",
    "reqwest",
    "ureq",
    "hyper",
    "curl",
    "tokio",
    "async-std",
    "smol",
    "gloo-timers",
];

/// Returns the workspace's crates with their dependencies. Dependencies for tests and builds are left out, and so are
/// optional ones, which only [`TOOLS`] and users of the libraries enable.
fn members() -> Vec<(String, BTreeSet<String>)> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"]);
    let answer = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > [RUNTIME.len(), TOOLS.len()].iter().sum());
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"].is_null() && dependency["optional"] == false).map(name).collect()
    };
    packages.iter().map(|package| (name(package), used(package))).collect()
}

fn named<'a>(member: &'a (String, BTreeSet<String>), refused: &[&str]) -> Vec<&'a String> {
    member.1.iter().filter(|dependency| refused.contains(&dependency.as_str())).collect()
}

#[test]
fn only_edge_and_the_workers_name_the_runtime() {
    for name in RUNTIME {
        let members = members();
        let member = members.iter().find(|(member, _)| member == name);
        assert!(
            !named(member.unwrap(), &OF_THE_RUNTIME).is_empty(),
            "{name} names nothing of it: is it still one of them?"
        );
    }
    for member in members().iter().filter(|(name, _)| !RUNTIME.contains(&name.as_str())) {
        let found = named(member, &OF_THE_RUNTIME);
        assert!(found.is_empty(), "{} names {found:?}: put it behind a port and implement that in edge", member.0);
    }
}

#[test]
fn only_edge_and_the_tools_have_a_clock_a_network_or_randomness() {
    let free = |name: &str| name == "edge" || TOOLS.contains(&name);
    for member in members().iter().filter(|(name, _)| !free(name)) {
        let found = named(member, &OUTSIDE);
        assert!(found.is_empty(), "{} names {found:?}: take it as a parameter or a port", member.0);
    }
}

#[test]
fn the_command_line_shop_does_not_depend_on_the_operators_tool() {
    let members = members();
    let (_, used) = members.iter().find(|(name, _)| name == "surety-cli").unwrap();
    assert!(used.contains("provider") && !used.contains("xtask"), "{used:?}");
}

#[test]
fn domain_crates_depend_on_no_worker_and_not_on_edge() {
    for member in members().iter().filter(|(name, _)| !RUNTIME.contains(&name.as_str())) {
        let found = named(member, &RUNTIME);
        assert!(found.is_empty(), "{} names {found:?}: the arrow points the other way", member.0);
    }
}
