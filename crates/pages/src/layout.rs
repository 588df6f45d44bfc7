//! The layout of all pages.

use maud::{DOCTYPE, Markup, html};

use crate::{
    asset::{Asset, COMMON, ICON, STYLE},
    picture,
};

/// Preview that other sites show with a link to the page (Open Graph).
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Address of the page.
    pub url: String,
    /// Short description of the page.
    pub description: String,
    /// Address of the preview picture (module `picture`); `None` for a preview without picture.
    pub image: Option<String>,
    /// Address of a video (https); `None` for a preview without video.
    pub video: Option<String>,
}

/// The entry of the navigation that is highlighted on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The catalogue, `/`.
    Catalogue,
    /// The page for sellers, `/sell`.
    Sell,
    /// The account, `/me`.
    Account,
    /// No entry is highlighted.
    Elsewhere,
    /// No navigation at all, for a page on which the reader answers one question.
    Alone,
}

/// Properties of a page that the layout renders.
#[derive(Debug)]
pub struct Page<'a> {
    /// Title for the tab and for link previews.
    pub title: &'a str,
    /// Highlighted entry of the navigation.
    pub section: Section,
    /// Script of the page; `None` for a page that needs only the common script.
    pub script: Option<Asset>,
    /// Preview of links to the page. If `None`, search engines are asked not to index the page.
    pub card: Option<Card>,
}

impl Page<'_> {
    /// Renders the HTML document with `main` as its main part.
    #[must_use]
    pub fn around(&self, main: &Markup) -> String {
        self.after_search("", main)
    }

    /// Renders the HTML document with `main` as its main part, and with the words of a search in the header's search
    /// field.
    #[must_use]
    pub fn after_search(&self, words: &str, main: &Markup) -> String {
        let alone = self.section == Section::Alone;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body {
                    @if !alone { a.skip href="#main" { "Skip to content" } }
                    aside.net aria-label="Network" { "Test network (Cardano preprod): prices are in test ADA, which has no value." }
                    (self.header(words))
                    (main)
                    @if !alone {
                        footer {
                            a href="/protection" { "How protection works" }
                            a href="/help" { "Help and contact" }
                            a href="/about" { "About" }
                            a href="/connect" { "Connect an agent" }
                            a href="/docs" { "API" }
                            a href="/feed.xml" { "New prompts (feed)" }
                        }
                    }
                }
            }
        };
        page.into_string()
    }

    fn head(&self) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (self.title) " · Surety" }
                @match &self.card {
                    Some(card) => {
                        meta name="description" content=(card.description);
                        link rel="canonical" href=(card.url);
                        meta property="og:site_name" content="Surety";
                        meta property="og:type" content="website";
                        meta property="og:title" content=(self.title);
                        meta property="og:description" content=(card.description);
                        meta property="og:url" content=(card.url);
                        @if let Some(image) = &card.image {
                            meta property="og:image" content=(image);
                            meta property="og:image:type" content="image/png";
                            meta property="og:image:width" content=(picture::WIDTH);
                            meta property="og:image:height" content=(picture::HEIGHT);
                            meta property="og:image:alt" content={ "Cover of " (self.title) };
                        }
                        @if let Some(video) = &card.video { meta property="og:video" content=(video); }
                        meta name="twitter:card" content=(if card.image.is_some() { "summary_large_image" } else { "summary" });
                    }
                    None => { meta name="robots" content="noindex"; }
                }
                link rel="alternate" type="application/atom+xml" title="New prompts on Surety" href="/feed.xml";
                link rel="icon" type="image/svg+xml" href=(ICON);
                link rel="stylesheet" href=(STYLE);
                @if self.script.is_some() { link rel="modulepreload" href=(COMMON); }
                script type="module" src=(self.script.unwrap_or(COMMON)) {}
            }
        }
    }

    fn header(&self, searched: &str) -> Markup {
        let entry = |section, path, words| {
            let account = section == Section::Account;
            html! { a href=(path) aria-current=[(self.section == section).then_some("page")] data-account[account] { (words) } }
        };
        let brand = html! { img src=(ICON) alt="" width="28" height="28"; "Surety" };
        html! {
            header.site {
                @if self.section == Section::Alone {
                    span.brand { (brand) }
                } @else {
                    a.brand href="/" { (brand) }
                    form action="/" role="search" {
                        input type="search" name="q" value=(searched) maxlength="200" aria-label="Search prompts" placeholder="Search prompts";
                    }
                    nav aria-label="Site" {
                        (entry(Section::Catalogue, "/", "Browse"))
                        (entry(Section::Sell, "/sell", "Sell"))
                        (entry(Section::Account, "/me", "Account"))
                    }
                }
            }
        }
    }
}
