//! Checks that no file of a crate imports itself indirectly, so that a reader can read the files one after the other.
//!
//! The test considers paths that start with `crate::` or `super::`, outside of tests. It ignores names taken from a
//! surrounding module (its own items, and those that it re-exports from its children), because that is how Rust nests
//! modules.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]
#![allow(clippy::ptr_arg, reason = "a module is one type here")]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
};

/// Path of a module in its crate; empty for the root.
type Module = Vec<String>;

/// Returns a crate's Rust files by module path, without files that contain only tests.
fn files(source: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(module(source, &path), without_comments(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    let tests: BTreeSet<Module> = found.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
    found.retain(|module, _| !(0..=module.len()).any(|length| tests.contains(module.get(..length).unwrap())));
    found.into_iter().map(|(module, text)| (module, without_test_imports(&without_tests(&text)))).collect()
}

fn module(source: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let mut names: Module = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns the text after each `#[cfg(test)]`, which begins with the item that the attribute marks.
fn marked(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[cfg(test)]").skip(1).map(str::trim_start)
}

/// Returns the modules with a file of their own that are compiled for tests only.
fn test_modules(parent: &Module, text: &str) -> Vec<Module> {
    let named = marked(text).filter_map(|rest| rest.split_once(';')).filter_map(|(item, _)| {
        let name = item.split_whitespace().last()?;
        item.contains("mod ").then(|| name.to_owned()).filter(|_| !item.contains('{'))
    });
    named.map(|name| parent.iter().cloned().chain([name]).collect()).collect()
}

/// Removes the test module at the end of a file.
fn without_tests(text: &str) -> String {
    let end = text.match_indices("#[cfg(test)]").find(|(at, mark)| {
        let rest = text.get(at + mark.len()..).unwrap();
        rest.split_once('{').is_some_and(|(item, _)| item.contains("mod ") && !item.contains(';'))
    });
    text.get(..end.map_or(text.len(), |(at, _)| at)).unwrap().to_owned()
}

/// Removes the imports that are compiled for tests only.
fn without_test_imports(text: &str) -> String {
    text.split("#[cfg(test)]\n")
        .enumerate()
        .map(|(at, part)| {
            match part.strip_prefix("pub ").unwrap_or(part).strip_prefix("use ").and_then(|rest| rest.split_once(';')) {
                Some((_, rest)) if at > 0 => rest,
                _ => part,
            }
        })
        .collect()
}

/// Modules that route modules may name without this counting as an import, because an endpoint is declared together
/// with its page.
const NAMED_BY_DECLARATIONS: [&[&str]; 1] = [&["routes", "pages"]];

/// Returns all paths in a file that start with `crate` or `super`. Each branch of an import tree is a path.
fn paths(text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text.get(..at).unwrap();
            if !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                tree(text.get(at..).unwrap(), &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Parses a path or a tree of paths and adds each path to `found`. Returns the remaining text.
fn tree<'a>(text: &'a str, prefix: &mut Module, found: &mut Vec<Module>) -> &'a str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        let Some(mut rest) = text.strip_prefix('{') else {
            found.push(prefix.clone());
            return text;
        };
        loop {
            rest = tree(rest, prefix, found).trim_start();
            let Some(next) = rest.strip_prefix(',') else { break };
            rest = next.trim_start();
            if rest.starts_with('}') {
                break;
            }
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    prefix.push(name.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(deeper) => tree(deeper, prefix, found),
        None => {
            found.push(prefix.clone());
            rest.trim_start()
                .strip_prefix("as ")
                .map_or(rest, |alias| alias.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
        }
    };
    prefix.pop();
    rest
}

/// Returns the module that a path leads to: the longest prefix of the path that is a module with a file of its own.
fn named(from: &Module, path: &Module, files: &BTreeMap<Module, String>) -> Module {
    let mut absolute = if path.first().is_some_and(|first| first == "crate") { Module::new() } else { from.clone() };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(absolute.pop()),
            name => absolute.push(name.to_owned()),
        }
    }
    while !files.contains_key(&absolute) && !absolute.is_empty() {
        absolute.pop();
    }
    absolute
}

type Imports = BTreeMap<Module, BTreeSet<Module>>;

fn imports(files: &BTreeMap<Module, String>) -> Imports {
    let of = |(from, text): (&Module, &String)| {
        let all = paths(text).into_iter().map(|path| named(from, &path, files));
        // A parent module is not an import.
        let named = |to: &Module| {
            from.first().is_some_and(|first| first == "routes") && NAMED_BY_DECLARATIONS.iter().any(|it| to == it)
        };
        (from.clone(), all.filter(|to| !from.starts_with(to) && !named(to)).collect())
    };
    files.iter().map(of).collect()
}

/// Returns the shortest cycle of imports through a file, or `None` if there is none.
fn circle(start: &Module, imports: &Imports) -> Option<Vec<Module>> {
    let mut from: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(file) = next.pop_front() {
        for to in imports.get(file).into_iter().flatten() {
            if to == start {
                let mut way = vec![start.clone(), file.clone()];
                while let Some(before) = way.last().and_then(|last| from.get(last)) {
                    way.push((*before).clone());
                }
                way.reverse();
                return Some(way);
            }
            if let Entry::Vacant(unseen) = from.entry(to) {
                unseen.insert(file);
                next.push_back(to);
            }
        }
    }
    None
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let listed = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["", "arbiter", "functions/watcher", "xtask"].map(|folder| root.join(folder));
    listed.chain(others).map(|folder| folder.join("src")).collect()
}

#[test]
fn no_file_imports_itself_through_others() {
    let mut found = BTreeSet::new();
    for source in crates() {
        let files = files(&source);
        assert!(!files.is_empty(), "{} has no files", source.display());
        let imports = imports(&files);
        for circle in imports.keys().filter_map(|file| circle(file, &imports)) {
            let first = circle.iter().min().unwrap();
            let at = circle.iter().position(|file| file == first).unwrap();
            let turned = circle.iter().skip(at).chain(circle.iter().skip(1).take(at)).map(|file| file.join("::"));
            found.insert(format!("{}: {}", source.display(), turned.collect::<Vec<_>>().join(" -> ")));
        }
    }
    assert!(
        found.is_empty(),
        "files import each other in a circle:\n{}",
        found.into_iter().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn a_circular_import_is_named() {
    let text = |text: &str| text.to_owned();
    let files = BTreeMap::from([
        (vec![], text("mod a; mod b; mod c;")),
        (vec![text("a")], text("use crate::{b::{self, X}, c};")),
        (vec![text("b")], text("fn f() { super::c::g() }")),
        (vec![text("c")], text("use crate::a::Y as Z;")),
    ]);
    let imports = imports(&files);
    assert_eq!(circle(&vec![text("a")], &imports), Some(["a", "c", "a"].map(|name| vec![text(name)]).to_vec()));
    assert_eq!(circle(&vec![text("b")], &imports).map(|way| way.len()), Some(4));
    assert_eq!(circle(&vec![], &imports), None);
}
