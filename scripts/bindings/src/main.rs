//! The JavaScript around a worker's WebAssembly: `bindings PROGRAM.wasm FOLDER PROFILE` writes `program.js` and
//! `program_bg.wasm`, as `wasm-bindgen` does for its target `module`. The options let `crates/edge/entry.js` detect a panic and
//! create a new instance after it.
//!
//! For the profile `deploy`, the names of functions are left out, which saves a seventh of the size after gzip. A panic is logged
//! with its file and line all the same, but stack traces show numbers instead of names.

use std::{env, error::Error};

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--version"] => println!("bindings {}", env!("CARGO_PKG_VERSION")),
        [program, folder, profile] => Bindgen::new()
            .module(true)?
            .input_path(program)
            .out_name("program")
            .omit_default_module_path(false)
            .reset_state_function(true)
            .force_enable_abort_handler(true)
            .remove_name_section(profile == "deploy")
            .generate(folder)?,
        _ => return Err("usage: bindings PROGRAM.wasm FOLDER PROFILE".into()),
    }
    Ok(())
}
