//! One file for each resource: parse, call a crate, render.

pub mod creators;
pub mod health;
pub mod listings;
pub mod purchases;
pub mod unlock;
