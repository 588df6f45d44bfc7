//! The JavaScript around a worker's WebAssembly: `bindings PROGRAM.wasm FOLDER` writes `program.js` and `program_bg.wasm`, as
//! `wasm-bindgen` does for its target `module`. What stands around these here (`crates/edge/entry.js`) needs to know of a
//! panic, and to start anew after one.

use std::{env, error::Error};

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--version"] => println!("bindings {}", env!("CARGO_PKG_VERSION")),
        [program, folder] => Bindgen::new()
            .module(true)?
            .input_path(program)
            .out_name("program")
            .omit_default_module_path(false)
            .reset_state_function(true)
            .force_enable_abort_handler(true)
            .generate(folder)?,
        _ => return Err("usage: bindings PROGRAM.wasm FOLDER".into()),
    }
    Ok(())
}
