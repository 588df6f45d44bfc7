//! Renders Markdown (CommonMark with tables) written by strangers, for descriptions and purchased texts.
//!
//! HTML tags in the text are shown as text. Links lead to other sites only, pictures are reduced to their alternative
//! text, and headings are below those of the page.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html::push_html};
use url::Url;

/// Number of levels by which headings are lowered, because the page itself uses the first two.
const LOWERED: usize = 2;
/// Maximum nesting depth of quotes, lists and emphasis. Deeper elements are rendered as their text only, so that a
/// short text cannot become a page of many megabytes.
const MAX_DEPTH: usize = 16;
const LEVELS: [HeadingLevel; 6] =
    [HeadingLevel::H1, HeadingLevel::H2, HeadingLevel::H3, HeadingLevel::H4, HeadingLevel::H5, HeadingLevel::H6];

/// Renders a text as HTML that contains only a fixed set of elements.
#[must_use]
pub fn render(text: &str) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut open = Open::default();
    let events = Parser::new_ext(text, options).filter_map(|event| open.allowed(event));
    let mut out = String::with_capacity(text.len().saturating_mul(5) / 4);
    push_html(&mut out, events);
    PreEscaped(out)
}

/// Elements that are open at the current position in the text.
#[derive(Default)]
struct Open {
    /// Whether each open quote, list, item and emphasis was rendered as an element, from the outermost to the
    /// innermost.
    nested: Vec<bool>,
    /// Whether the open link was rendered as an element.
    is_linked: bool,
}

impl Open {
    /// Returns the event to render in place of `event`; `None` to render nothing.
    fn allowed<'a>(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
            Event::Start(tag) => self.opened(tag),
            Event::End(tag) => self.closed(tag),
            Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::HardBreak | Event::Rule => Some(event),
            // These belong to extensions that are not enabled.
            _ => None,
        }
    }

    fn opened<'a>(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        let tag = match tag {
            Tag::HtmlBlock => Tag::Paragraph,
            Tag::Heading { level, .. } => {
                Tag::Heading { level: lowered(level), id: None, classes: vec![], attrs: vec![] }
            }
            Tag::CodeBlock(_) => Tag::CodeBlock(CodeBlockKind::Indented),
            // Alignment would be an inline style, which the pages' policy forbids.
            Tag::Table(columns) => Tag::Table(vec![pulldown_cmark::Alignment::None; columns.len()]),
            Tag::Link { dest_url, .. } => {
                let element = link(&dest_url);
                self.is_linked = element.is_some();
                return element.map(|element| Event::InlineHtml(CowStr::from(element)));
            }
            Tag::BlockQuote(_) => return self.nested(Tag::BlockQuote(None)),
            Tag::List(_) | Tag::Item | Tag::Emphasis | Tag::Strong | Tag::Strikethrough => return self.nested(tag),
            Tag::Paragraph | Tag::TableHead | Tag::TableRow | Tag::TableCell => tag,
            _ => return None,
        };
        Some(Event::Start(tag))
    }

    fn nested<'a>(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        let is_shown = self.nested.len() < MAX_DEPTH;
        self.nested.push(is_shown);
        is_shown.then_some(Event::Start(tag))
    }

    fn closed<'a>(&mut self, tag: TagEnd) -> Option<Event<'a>> {
        let tag = match tag {
            TagEnd::HtmlBlock => TagEnd::Paragraph,
            TagEnd::Heading(level) => TagEnd::Heading(lowered(level)),
            TagEnd::Link => return self.is_linked.then(|| Event::InlineHtml(CowStr::from("</a>"))),
            TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough => return self.nested.pop()?.then_some(Event::End(tag)),
            TagEnd::Paragraph
            | TagEnd::CodeBlock
            | TagEnd::Table
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell => tag,
            _ => return None,
        };
        Some(Event::End(tag))
    }
}

fn lowered(level: HeadingLevel) -> HeadingLevel {
    LEVELS.get((level as usize).saturating_add(LOWERED).saturating_sub(1)).copied().unwrap_or(HeadingLevel::H6)
}

/// Returns the opening tag of a link to another site, or `None` for an address that is no absolute web or mail address.
fn link(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "https" | "http" | "mailto"))?;
    let escaped = html! { (url) }.into_string();
    Some(format!("<a href=\"{escaped}\" rel=\"nofollow noopener noreferrer ugc\">"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        render(text).into_string()
    }

    #[test]
    fn lists_code_emphasis_and_tables_are_rendered() {
        for (text, html) in [
            ("1. one\n2. two\n", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n"),
            ("Use `cargo test` **now**", "<p>Use <code>cargo test</code> <strong>now</strong></p>\n"),
            ("```rust\nlet a = 1 < 2;\n```", "<pre><code>let a = 1 &lt; 2;\n</code></pre>\n"),
            ("# Title\n##### Deep", "<h3>Title</h3>\n<h6>Deep</h6>\n"),
            ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>\n"),
        ] {
            assert_eq!(rendered(text), html, "{text}");
        }
        let table = rendered("| a | b |\n|:--|--:|\n| 1 | 2 |");
        assert!(table.contains("<td>1</td><td>2</td>") && !table.contains("style"), "{table}");
    }

    #[test]
    fn html_in_the_text_is_shown_as_text() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=alert(1)>\n\n**x**\n\n</div>",
            "<!-- c --><style>*{display:none}</style>",
            "`</code><script>`",
            "```\n</pre><script>\n```",
            "```\"><script>\nx\n```",
            "![\"><script>](https://example.com/a.png \"<script>\")",
            "[a](<https://example.com/\"><script>>)",
            "[a](https://example.com/ '\"><script>')",
            "&lt;script&gt;<svg/onload=alert(1)>",
        ] {
            let html = rendered(text);
            for forbidden in ["<script", "<img", "<div", "<style", "<svg", "<!--"] {
                assert!(!html.contains(forbidden), "{text}: {html}");
            }
        }
    }

    #[test]
    fn links_lead_to_other_sites_and_pass_nothing_on() {
        assert_eq!(
            rendered("[docs](https://example.com/a?b=1&c=2)"),
            "<p><a href=\"https://example.com/a?b=1&amp;c=2\" rel=\"nofollow noopener noreferrer ugc\">docs</a></p>\n"
        );
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "&#106;avascript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "/me?next=/x",
            "//evil.example",
            "file:///etc/passwd",
            "blob:https://example.com/1",
        ] {
            assert_eq!(rendered(&format!("[a]({address})")), "<p>a</p>\n", "{address}");
        }
    }

    #[test]
    fn a_hostile_text_does_not_become_many_times_longer() {
        const BYTES: usize = 100_000;
        for part in [">", "* ", "1. ", "*a **b ", "[a](b", "`", "\"", "![", "~~a ", "| ", "&", "-\n", "\\\n", "<a", "["]
        {
            let text = part.repeat(BYTES / part.len());
            let html = rendered(&text);
            assert!(html.len() < 8 * BYTES, "{part}: {}", html.len());
        }
        let expanded = format!("[a]: https://example.com/{}\n\n{}", "x".repeat(1_000), "[a] ".repeat(25_000));
        assert!(rendered(&expanded).len() < 8 * BYTES);
    }
}
