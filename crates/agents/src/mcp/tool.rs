//! Types for declaring the tools of an MCP endpoint: a tool with its handler, its result, and the trait of a set of
//! tools.

use std::pin::Pin;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{for_models, shop::Shelf};

/// Names of the numeric arguments of all tools.
const NUMBERS: [&str; 4] = ["maxPriceAda", "minReputation", "limit", "contentOffset"];

/// Effect of a tool on the account's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads.
    Reads,
    /// The tool moves money, so the agent needs the scope `mcp`.
    Spends,
}

/// A tool of a shop `S`.
#[allow(missing_debug_implementations, reason = "the shop need not have one")]
pub struct Tool<S> {
    pub name: &'static str,
    pub effect: Effect,
    pub(super) call: Handler<S>,
    /// Builds the tool's definition, as listed by `tools/list`.
    #[cfg(test)]
    pub(super) definition: fn(name: &str, effect: Effect) -> Value,
}

/// Handler of a tool's calls. Receives the shop, the call's arguments, and the members of its `_meta`.
pub(super) type Handler<S> = for<'a> fn(&'a S, Map<String, Value>, &'a Map<String, Value>) -> Answer<'a>;

/// The future of a tool's result.
pub(super) type Answer<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + 'a>>;

/// Declares a [`Tool`]: its name, effect and texts, and a handler with the types of its arguments and its result.
macro_rules! tool {
    (
        $name:literal, $effect:ident, $title:literal, $description:expr,
        |$shop:ident, $arguments:ident: $in:ty| -> $out:ty { $call:expr }
    ) => {
        $crate::mcp::tool::Tool {
            name: $name,
            effect: $crate::mcp::tool::Effect::$effect,
            call: |$shop, arguments, _| {
                Box::pin(async move {
                    let $arguments: $in = $crate::mcp::tool::read(arguments)?;
                    let result: $out = $call.await?;
                    Ok($crate::mcp::tool::ToolResult::of(&result))
                })
            },
            #[cfg(test)]
            definition: |name, effect| {
                $crate::mcp::schemas::definition::<$in>(
                    name,
                    effect,
                    $title,
                    $description,
                    Some($crate::mcp::schemas::result::<$out>()),
                )
            },
        }
    };
}
pub(super) use tool;

/// The result of a tool, or an error message for the model.
pub(super) type ToolOutcome = Result<ToolResult, String>;

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Result for programs, a JSON object. Models get the same JSON as text, unless `text` is set.
    pub structured: Option<String>,
    /// Text for models in place of `structured`.
    pub text: Option<String>,
    /// `true` if the call failed. The text then tells the model what to do next.
    pub is_error: bool,
    /// Members of the result's `_meta`.
    pub meta: Map<String, Value>,
}

impl ToolResult {
    /// Creates a successful result from a view, and adds amounts in tADA and ISO times, which language models read more
    /// reliably.
    pub(super) fn of(view: &impl Serialize) -> Self {
        Self { structured: Some(for_models::to_model_json(json!(view))), ..Self::default() }
    }

    /// Creates a failed result. `text` tells the model what to do next.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), is_error: true, ..Self::default() }
    }

    /// Formats the result's JSON members without the enclosing braces. The last one is `isError`.
    pub(super) fn members(&self) -> String {
        let text = self.text.as_ref().or(self.structured.as_ref());
        let text = text.map_or_else(|| "\"\"".into(), |text| json!(text).to_string());
        let structured = self.structured.as_ref().map(|json| format!("\"structuredContent\":{json},"));
        format!(
            "\"content\":[{{\"type\":\"text\",\"text\":{text}}}],{}\"isError\":{}",
            structured.unwrap_or_default(),
            self.is_error
        )
    }
}

/// Set of tools of one MCP endpoint.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Toolset {
    type Shop;

    /// Definitions of the tools, a JSON array.
    const TOOLS: &'static str;
    /// Instructions for models on how to use the server.
    const INSTRUCTIONS: &'static str;

    /// Returns the catalogue, whose listings are also the endpoint's MCP resources.
    fn shelf(&self) -> &impl Shelf;

    /// Returns the shop.
    fn shop(&self) -> &Self::Shop;

    /// Returns the tools, in the order in which `tools/list` lists them.
    fn declared() -> impl IntoIterator<Item = Tool<Self::Shop>>;

    /// Returns the tool with this name, or `None`.
    fn named(name: &str) -> Option<Tool<Self::Shop>> {
        Self::declared().into_iter().find(|tool| tool.name == name)
    }

    /// Returns whether the tool moves money, so that calls to it need the scope `mcp`.
    #[must_use]
    fn spends(name: &str) -> bool {
        Self::named(name).is_some_and(|tool| tool.effect == Effect::Spends)
    }

    /// Calls a tool. Returns `None` if there is no tool of this name.
    async fn call(&self, name: &str, arguments: Map<String, Value>, meta: &Map<String, Value>) -> Option<ToolResult> {
        let tool = Self::named(name)?;
        Some((tool.call)(self.shop(), arguments, meta).await.unwrap_or_else(ToolResult::failed))
    }
}

/// Parses a tool's arguments. An integer that a model writes as `80.0` is accepted. A number written as a string is an
/// error.
pub(super) fn read<T: DeserializeOwned>(mut arguments: Map<String, Value>) -> Result<T, String> {
    for name in NUMBERS {
        let Some(value) = arguments.get_mut(name) else { continue };
        if value.is_string() {
            return Err(format!("{name}: must be a number, for example 5."));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number that u32 holds")]
        if let Some(whole) = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=4e9).contains(number)) {
            *value = json!(whole as u32);
        }
    }
    serde_json::from_value(arguments.into()).map_err(|error| {
        format!("The arguments are not what the tool's inputSchema asks for: {error}. Correct them and call again.")
    })
}
