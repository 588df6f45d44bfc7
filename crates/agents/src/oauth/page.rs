//! The HTML page on which an owner answers a consent request, or the page with the reason for a refusal.
//!
//! The page contains the sealed request (which also prevents forged answers) and nothing secret. Declining is a plain
//! link, so it needs no script. A small script signs with the owner's wallet. Scripts and styles are never inline,
//! because the content security policy (`pages::HEADERS`) forbids it.

use api_types::MAX_REPUTATION;
use maud::{Markup, html};
use pages::{
    asset::{Asset, CONSENT},
    layout::{Page, Section},
    parts,
};

use super::{
    Authority, Scope,
    authorize::{AuthorizeRefusal, ConsentRequest},
};

/// Limits per purchase and per day, in ADA, that the consent form suggests and a new account gets.
const DEFAULT_LIMITS: (u32, u32) = (10, 30);

fn page(title: &str, script: Option<Asset>, main: &Markup) -> String {
    Page { title, section: Section::Alone, script, card: None }.around(main)
}

/// Renders the consent page (200). `demo` tells whether the owner may choose the shared demo wallet.
#[must_use]
pub fn consent(request: &ConsentRequest, authority: &Authority, demo: bool, now_ms: u64) -> String {
    let left_ms = request.expires_at_ms.saturating_sub(now_ms);
    let main = html! {
        main #main.narrow data-request=(request.seal(authority)) data-expires-in=(left_ms) {
            h1 { "Let " strong { (request.client_name) } " shop for you?" }
            (who(request))
            (what(request.scope))
            (limits())
            (parts::wallets("Approve with your wallet"))
            @if demo { (demo_wallet()) }
            (parts::progress())
            p { a.button.quiet #deny href=(request.denied(authority)) { "Deny" } }
            noscript { p.warning { "Approving needs JavaScript, because your wallet is asked to sign. Denying does not." } }
        }
    };
    page("Connect an agent", Some(CONSENT), &main)
}

fn who(request: &ConsentRequest) -> Markup {
    let local = request.redirect_uri.is_local();
    html! {
        dl {
            dt { "App" }
            dd {
                (request.client_name)
                @match &request.published_at {
                    Some(host) => { " (published by " strong { (host) } ")" }
                    None => { " (its own name for itself: not verified)" }
                }
            }
            dt { "Answer goes to" }
            dd { strong { (request.redirect_uri.host()) } @if local { " (this computer)" } }
        }
        @if local {
            p.warning {
                "The answer goes to a program on this computer. Go on only if you started it yourself just now."
            }
        }
    }
}

/// Describes the permissions of a scope.
const fn permits(scope: Scope) -> &'static [&'static str] {
    const SEARCH: &str = "search listings";
    const SEE: &str = "see your Surety balance, and what you bought with it or with the wallet that you sign with";
    match scope {
        Scope::All => &[
            SEARCH,
            SEE,
            "buy from your Surety balance, up to the limits below",
            "send what is left in it back to you",
        ],
        Scope::Read => &[SEARCH, SEE],
    }
}

fn what(scope: Scope) -> Markup {
    html! {
        p { "The agent may:" }
        ul {
            @for (left, permitted) in permits(scope).iter().rev().enumerate().rev() {
                li { (permitted) (if left == 0 { "." } else { ";" }) }
            }
        }
        p {
            "It cannot touch the wallet that you sign with."
            @if !scope.may_spend() { " It asked for no more: it cannot buy." }
        }
        @if scope == Scope::All {
            p.field { label { input #read-only type="checkbox"; " Let it only search and look: no buying" } }
        }
        p { "Limits can be changed and the agent removed at any time." }
    }
}

fn limits() -> Markup {
    let (per_purchase, per_day) = DEFAULT_LIMITS;
    html! {
        fieldset {
            legend { "Limits" }
            p.note { "For you and all your agents together. If your account has limits, they stay as they are unless you change the numbers here." }
            p.field {
                label for="per-purchase" { "Most per purchase (tADA)" }
                input #per-purchase type="number" inputmode="numeric" min="1" max="100" step="1" required value=(per_purchase);
            }
            p.field {
                label for="per-day" { "Most per day (tADA)" }
                input #per-day type="number" inputmode="numeric" min="1" max="500" step="1" required value=(per_day);
            }
            p.field {
                label for="ask-above" { "Agents ask me above (tADA)" }
                input #ask-above type="number" inputmode="numeric" min="0" max="100" step="1" aria-describedby="asks";
            }
            p.note #asks { "What an agent would buy above that price waits until you approve it. Left empty, that stays as it is: at first, agents never ask." }
            p.field { label { input #protected-only type="checkbox" aria-describedby="rules"; " Agents buy with protection only" } }
            p.field {
                label for="min-reputation" { "Agents buy from sellers with a reputation of at least" }
                input #min-reputation type="number" inputmode="numeric" min="0" max=(MAX_REPUTATION) step="1" aria-describedby="rules";
            }
            p.note #rules { "These rules are for all your agents. Left empty, they stay as they are: at first, agents buy in each mode and from each seller." }
        }
    }
}

fn demo_wallet() -> Markup {
    html! {
        fieldset {
            legend { "Or just try it" }
            button.quiet #demo type="button" { "Use the shared demo wallet" }
            p.note {
                "All users share it: at most 10 tADA each and 30 tADA a day, whatever is set above. What it buys is not \
                 private."
            }
        }
    }
}

/// Renders the page for a refused authorization request (400): the reason, and the link back to the client if the
/// refusal has one.
#[must_use]
pub fn refused(refusal: &AuthorizeRefusal) -> String {
    let main = html! {
        main #main.narrow {
            h1 { "This agent cannot be connected" }
            p role="alert" { (refusal.error.description) }
            @match &refusal.back {
                Some(back) => { p { a.button href=(back) { "Back to the agent" } } }
                None => { p { "Close this page and connect again from the agent." } }
            }
        }
    };
    page("Not connected", None, &main)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn rendered(name: &str, demo: bool) -> String {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        let mut request = world.consent(&client);
        request.client_name = name.into();
        consent(&request, &world.authority, demo, world.now())
    }

    #[test]
    fn the_consent_page_names_the_client_and_the_redirect_host() {
        let page = rendered("Shopper", true);
        assert!(page.contains("<strong>Shopper</strong>") && page.contains("not verified"));
        assert!(page.contains("<strong>127.0.0.1</strong>") && page.contains("this computer"));
        assert!(page.contains("id=\"demo\"") && !rendered("Shopper", false).contains("id=\"demo\""));
    }

    #[test]
    fn a_client_name_cannot_break_out_of_the_consent_page() {
        for hostile in
            ["<script>alert(1)</script>", "\" onload=\"alert(1)", "</title><img src=x onerror=alert(1)>", "'&<>"]
        {
            let page = rendered(hostile, true);
            assert!(!page.contains(hostile), "{page}");
            assert_eq!(page.matches("<script").count(), 1, "{page}");
        }
    }

    #[test]
    fn the_consent_page_has_no_inline_script_and_may_not_be_framed() {
        let page = rendered("Shopper", true);
        assert!(!page.contains("style=") && !page.contains("javascript:") && !page.contains("onclick"));
        let policy = pages::HEADERS.iter().find(|(name, _)| *name == "content-security-policy").unwrap().1;
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"));
        assert!(!policy.contains("unsafe"));
    }

    #[test]
    fn a_refusal_redirects_only_to_a_registered_address() {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        let stranger = with(&authorization(&client), "redirect_uri", "https://evil.example.com/");
        let page = refused(&world.authorize(&query(&stranger)).unwrap_err());
        assert!(!page.contains("evil") && !page.contains("<a "));
        let known = with(&authorization(&client), "response_type", "token");
        let page = refused(&world.authorize(&query(&known)).unwrap_err());
        assert!(page.contains("href=\"http://127.0.0.1/callback?error=unsupported_response_type&amp;iss="));
    }
}
