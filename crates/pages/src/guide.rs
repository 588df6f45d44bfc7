//! Pages that explain the service: how protection works, help, about, and how to connect an agent.

use escrow::evidence::EVIDENCE_GRACE_MS;
use market::fees::MIN_FEE;
use maud::{Markup, html};

use crate::{
    layout::{Card, Page, Section},
    parts::copyable,
};

/// Minutes from an order until (1) the proof of delivery is due, (2) the buyer can no longer dispute, (3) the arbiter
/// may decide, and (4) the arbiter has decided at the latest.
const MINUTES: [u64; 4] = {
    let [submit, unlock, dispute] = escrow::deadlines::AFTER_ISSUE_MS;
    [submit / 60_000, unlock / 60_000, dispute / 60_000, (dispute + EVIDENCE_GRACE_MS) / 60_000]
};

/// Sentence that states the guarantee of a protected purchase.
pub(crate) const GUARANTEE: &str =
    "You get exactly the file that the seller committed to before you paid, or your money back.";
/// The path of the page that explains protection.
pub(crate) const PROTECTION: &str = "/protection";

/// Minutes within which the proof of delivery is due.
pub(crate) const PROOF_DUE: u64 = MINUTES[0];
/// Minutes within which a buyer may dispute.
pub(crate) const DISPUTE_UNTIL: u64 = MINUTES[1];

fn page(origin: &str, path: &str, title: &str, description: &str, main: &Markup) -> String {
    let card = Card { url: format!("{origin}{path}"), description: description.to_owned(), ..Card::default() };
    Page { title, section: Section::Elsewhere, script: None, card: Some(card) }.around(&html! {
        main #main.narrow.guide { h1 { (title) } (main) }
    })
}

/// Renders `/protection`. `origin` is the service's address.
#[must_use]
pub fn protection(origin: &str) -> String {
    let [due, disputed, opens, over] = MINUTES;
    let main = html! {
        p.lead {
            "A protected purchase guarantees one thing: " b { "you get exactly the file that the seller committed to before you paid, or your money back." }
            " If the wrong file arrives, you must dispute it within " (disputed) " minutes of your order. If nothing arrives, there is no hurry."
        }
        p {
            "When a prompt is listed, its " dfn { "fingerprint" } " is published: a number that is computed from the text \
             (SHA-256). The same text always has the same fingerprint, and no other text has it. So everybody can check \
             later whether the file that arrived is the file that was offered."
        }
        p {
            "Your money does not go to the seller. A " dfn { "smart contract" } " holds it: a program on Cardano's public \
             ledger (“the chain”) that pays out by its own rules, which nobody can change, this shop included. It knows three endings."
        }
        section.ending aria-labelledby="delivered" {
            h2 #delivered { "1. The file arrives: the seller is paid" }
            (flow("The money goes from you into the contract, and from there to the seller.", false, true, false))
            (times(&[
                ("0 min", "You pay", "The contract holds it"),
                ("About 1 min", "Proof", "You read the text"),
                (&format!("{disputed} min"), "Seller paid", "You need do nothing"),
            ]))
            p {
                "The " dfn { "proof of delivery" } " is a fingerprint of the delivered text that the seller records on the chain. As \
                 soon as it is recorded, your text opens. This shop then compares the fingerprint of your text with the listing's, and \
                 tells you on the same page if they differ."
            }
            p {
                "You may close the page once you have paid. The purchase goes on without it, and you read the text, now and \
                 whenever you like, in your account or through “I already bought this” on the listing. Only the " (disputed) " minutes \
                 for a dispute go on as well."
            }
        }
        section.ending aria-labelledby="missing" {
            h2 #missing { "2. Nothing arrives: your money comes back" }
            (flow("The money goes from you into the contract, and from there back to you.", true, false, false))
            (times(&[
                ("0 min", "You pay", "The contract holds it"),
                (&format!("{due} min"), "No proof", "The seller is too late"),
                ("From then on", "Money back", "All that was held"),
            ]))
            p {
                "If you paid from your Surety balance, the money returns to it by itself, usually within minutes. If you paid with \
                 your own wallet, press “Take your money back” on the purchase's page, and sign. Only you can take it, and you may do \
                 so at any later time."
            }
        }
        section.ending aria-labelledby="disputed" {
            h2 #disputed { "3. The wrong file arrives: you dispute, and an arbiter decides" }
            (flow("The money goes from you into the contract. The arbiter decides whether it goes back to you or to the seller.", true, true, true))
            (times(&[
                (&format!("Until {disputed} min"), "You dispute", "The seller cannot collect"),
                (&format!("{opens} to {over} min"), "Decision", "By fingerprints alone"),
                ("Minutes later", "Paid out", "To you or to the seller"),
            ]))
            p {
                "Press “Dispute” on the purchase's page, before minute " (disputed) ". This shop then gives the arbiter the text that it \
                 delivered. If the fingerprint of that text is not the listing's, or if the arbiter does not receive the delivered text \
                 by minute " (over) ", you get everything back that the contract held, without doing anything more. If the \
                 fingerprint is the listing's, you lose the dispute: the seller is paid, and you keep the text. If it is already clear \
                 that you would lose, the page says so before you confirm the dispute."
            }
        }
        section aria-labelledby="arbiter" {
            h2 #arbiter { "Who is the arbiter, and what does it look at?" }
            p {
                "A program of this shop's operator, kept apart from the shop, with a key and a database of its own. It checks three \
                 things and nothing else: whether the money in the contract was paid for this listing, whether the text is the one \
                 whose fingerprint the seller recorded, and whether its fingerprint is the listing's. No person reads your text, and \
                 nobody judges its quality. The decision, its reason and the payment are shown on the purchase's page."
            }
            p {
                "The contract gives the arbiter power over disputed purchases only, and only from minute " (opens) " on. It does not \
                 check how the arbiter decides: that it goes by fingerprints, and pays the winner, is what you trust the operator with. \
                 If the arbiter never decides, the money stays in the contract until you release it to the seller, or the seller \
                 agrees to give it back."
            }
        }
        section aria-labelledby="uncovered" {
            h2 #uncovered { "What is not covered" }
            ul {
                li { b { "Quality." } " Whether the prompt is good, builds what its description says, or looks like its recording." }
                li { b { "Instant purchases." } " The seller is paid at once. There is no dispute and no refund, whatever arrives." }
                li { b { "Waiting too long." } " Once a proof of delivery is recorded, minute " (disputed) " ends your time to dispute: the seller is paid, and the sale is final." }
                li { b { "A shop that is down." } " If the proof is recorded and this shop does not show you the text, dispute it before minute " (disputed) ": if the arbiter does not receive the text either, you get your money back." }
                li { b { "A change of mind." } " On the purchase's page you can ask for a refund before the proof is recorded. If the right file arrives in time all the same, the arbiter decides as in a dispute, and the seller is paid." }
                li { b { "Network fees." } " Each transaction costs 0.2 to 0.5 tADA, which do not come back: your payment, and each later one that you sign." }
            }
            p {
                "Times count from the moment when you press “Pay”, and your purchase's page shows each as a time of day. A \
                 protected price may come with a " dfn { "deposit" } " that the contract needs to work; you get it back however the sale ends. Of a \
                 protected price this shop keeps a tenth, at least " (MIN_FEE.display_tada()) "; the seller gets the rest."
            }
        }
        p.acts { a.button href="/?mode=protected" { "Browse protected prompts" } a.button.quiet href="/help" { "Help" } }
    };
    page(origin, PROTECTION, "How protection works", GUARANTEE, &main)
}

/// Draws how the money goes from the buyer into the contract, and from there to the buyer, to the seller, or to the
/// party that the arbiter chooses. `words` is the text for screen readers.
fn flow(words: &str, to_buyer: bool, to_seller: bool, arbiter: bool) -> Markup {
    html! {
        svg.flow viewBox="0 0 300 84" role="img" aria-label=(words) {
            // Buyer.
            g.who { circle cx="32" cy="30" r="9" {} path d="M14 60c0-12 8-18 18-18s18 6 18 18z" {} }
            // Contract: a lock.
            g.lock { rect x="130" y="34" width="40" height="28" rx="5" {} path d="M138 34v-8a12 12 0 0 1 24 0v8" {} circle.hole cx="150" cy="48" r="4" {} }
            // Seller: a shop.
            g.who { path d="M252 30l4-10h28l4 10z" {} path d="M256 32v28h28v-28z" {} }
            path.way d="M58 42h60m-8-6l8 6l-8 6" {}
            @if to_buyer { path.back d="M118 58h-60m8-6l-8 6l8 6" {} }
            @if to_seller { path.pays d="M182 48h60m-8-6l8 6l-8 6" {} }
            // Arbiter: scales.
            @if arbiter { path.scales d="M150 4v14M138 8h24M138 8l-5 8h10zM162 8l-5 8h10z" {} }
        }
    }
}

/// Renders a timeline. Each step has a time, an event, and a remark.
fn times(steps: &[(&str, &str, &str)]) -> Markup {
    html! {
        ol.track { @for (when, what, more) in steps { li.done { span.soft { (when) } b { (what) } (more) } } }
    }
}

/// Renders `/help`. `contact` is the operator's address, `None` if it is not set.
#[must_use]
pub fn help(origin: &str, contact: Option<&Contact>) -> String {
    let main = html! {
        (question("I paid and see no text", &html! {
            "A payment needs a block of the network, usually 20 to 60 seconds. You may close the page: open the listing again, or your "
            a href="/me" { "account" } ", and it goes on where it was. You are never charged twice for the same order."
        }))
        (question("How do I read again what I bought?", &html! {
            "Open the purchase in your " a href="/me" { "account" } ", or the listing and “I already bought this”. It is free."
        }))
        (question("How do I get my money back?", &html! {
            "Only protected purchases come with that. Open the purchase: its page says what happens next, and shows the one action that is possible now. "
            a href=(PROTECTION) { "How protection works" } "."
        }))
        (question("My wallet does not appear", &html! {
            "It must run in this browser and offer CIP-30, the usual bridge between pages and wallets; Lace and Eternl do. Unlock it, switch its network to \
             preprod, and reload. On a phone, open this page in the browser that is inside your wallet's app."
        }))
        (question("Where do I get test ADA?", &html! {
            "From the " a href="https://docs.cardano.org/cardano-testnets/tools/faucet" rel="noreferrer" { "Cardano faucet" } ", free, for the network preprod."
        }))
        (question("Somebody sells my text, or something unlawful", &html! { "Write to the operator; an address is below." }))
        section aria-labelledby="contact" { h2 #contact { "Contact" } p { (reach(contact)) } }
    };
    page(
        origin,
        "/help",
        "Help",
        "Answers about payments, texts, refunds and wallets, and how to reach the operator.",
        &main,
    )
}

fn question(asked: &str, answer: &Markup) -> Markup {
    html! { section { h2 { (asked) } p { (answer) } } }
}

/// Renders `/about`. `contact` is the operator's address, `None` if it is not set.
#[must_use]
pub fn about(origin: &str, contact: Option<&Contact>) -> String {
    let main = html! {
        p.lead { "Surety is a marketplace for design prompts. People and AI agents buy them with ADA, the currency of the Cardano network, and can protect a purchase by a smart contract." }
        section aria-labelledby="isnt" {
            h2 #isnt { "What this is not" }
            ul {
                li { b { "Not real money." } " Everything runs on preprod, a test network. Prices are in test ADA (tADA), which has no value and can be lost when the network is reset." }
                li { b { "Not a bank." } " A Surety balance is a wallet whose key this service keeps for you, so that your agents can buy within your limits. Keep there only what you want to spend." }
                li { b { "Not a judge of quality." } " Protection compares files by their fingerprints; it does not say whether a prompt is good. " a href=(PROTECTION) { "How protection works" } "." }
                li { b { "Not the author." } " Sellers write and own what they list. Treat a bought text as you would any text from a stranger." }
            }
        }
        section aria-labelledby="operator" { h2 #operator { "Who runs it" } p { (reach(contact)) } }
        p { a href="/docs" { "API reference" } " · " a href="/connect" { "Connect an agent" } " · " a href="/llms.txt" { "Description for language models" } }
    };
    page(
        origin,
        "/about",
        "About Surety",
        "A marketplace for design prompts on a test network, and what it is not.",
        &main,
    )
}

/// The operator's address for people who use the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Text of the link.
    words: String,
    /// Address of the link: https or mailto.
    address: String,
}

impl Contact {
    /// Parses a mail address or an https address, or returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_mail = text.contains('@') && !text.contains([' ', ':', '/', '?', '#']);
        let address = if is_mail { format!("mailto:{text}") } else { text.to_owned() };
        let url = url::Url::parse(&address).ok().filter(|url| matches!(url.scheme(), "https" | "mailto"))?;
        Some(Self { words: text.to_owned(), address: url.into() })
    }
}

fn reach(contact: Option<&Contact>) -> Markup {
    html! {
        @match contact {
            Some(Contact { words, address }) => { "The operator of this shop answers at " a href=(address) rel="noreferrer" { (words) } "." }
            None => { "The operator of this copy has given no address. Money never depends on an answer: the contract pays out by its own rules." }
        }
    }
}

/// Renders `/connect`: commands that connect an AI agent.
#[must_use]
pub fn connect(origin: &str) -> String {
    let server = format!("{origin}/mcp");
    let json = |of: &str| format!("{{\"{of}\":{{\"surety\":{{\"type\":\"http\",\"url\":\"{server}\"}}}}}}");
    let main = html! {
        p.lead { "An AI agent that is connected here finds prompts for you and buys them within limits that you set. You can remove it at any time." }
        ol {
            li { "Run one of the commands below, in the program that you use." }
            li { "The agent opens this shop in your browser. Sign in with your wallet there and set its limits: one signature, which moves no money." }
            li { "Add funds to your Surety balance in your " a href="/me" { "account" } ". The agent pays from it and from nothing else." }
        }
        @for (name, command) in [
            ("Claude Code", format!("claude mcp add --transport http surety {server}")),
            ("Codex", format!("codex mcp add surety --url {server}")),
            ("Gemini CLI", format!("gemini mcp add --transport http surety {server}")),
            ("VS Code", format!("code --add-mcp '{{\"name\":\"surety\",\"type\":\"http\",\"url\":\"{server}\"}}'")),
            ("Cursor and others: in their mcp.json", json("mcpServers")),
        ] {
            h2 { (name) }
            (copyable(&format!("Command for {name}"), &command))
        }
        h2 { "Then say" }
        (copyable("What to say to the agent", "Find a hero section on surety for at most 5 tADA, buy it protected, and use it here."))
        h2 { "Without an account" }
        p { "An agent with a wallet of its own pays for each purchase over x402, without signing in:" }
        (copyable("Address for agents with a wallet of their own", &format!("{origin}/mcp/open")))
        p.small { a href="/llms.txt" { "All of this for language models" } " · " a href="/docs" { "API reference" } }
    };
    page(
        origin,
        "/connect",
        "Connect an agent",
        "One command connects Claude Code, Codex, Gemini CLI, VS Code or Cursor to this shop.",
        &main,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "https://shop.example";

    #[test]
    fn the_page_on_protection_answers_what_is_guaranteed_who_decides_and_when_money_comes_back() {
        let page = protection(ORIGIN);
        for said in [
            "exactly the file that the seller committed to before you paid, or your money back",
            "16 min",
            "31 min",
            "46 to 56 min",
            "Who is the arbiter",
            "No person reads your text",
            "What is not covered",
            "Instant purchases.",
            "returns to it by itself",
            "You may close the page",
            "what you trust the operator with",
            "Take your money back",
        ] {
            assert!(page.contains(said), "{said}");
        }
        assert_eq!(page.matches("<svg").count(), 3, "a picture of each ending");
    }

    #[test]
    fn new_words_are_explained_where_the_guide_first_uses_them() {
        let page = protection(ORIGIN);
        let main = page.split_once("<main").unwrap().1;
        for word in ["fingerprint", "smart contract", "proof of delivery", "deposit"] {
            let (first, explained) = (main.find(word).unwrap(), main.find(&format!("<dfn>{word}</dfn>")).unwrap());
            assert_eq!(first, explained + "<dfn>".len(), "{word}");
        }
    }

    #[test]
    fn an_operators_contact_is_a_mail_or_web_address_or_none() {
        for (text, address) in [
            ("help@shop.example", Some("mailto:help@shop.example")),
            ("https://shop.example/help", Some("https://shop.example/help")),
            ("javascript:alert(1)", None),
            ("http://shop.example", None),
            ("nobody", None),
            ("a@b?subject=x", None),
        ] {
            assert_eq!(Contact::parse(text).map(|contact| contact.address).as_deref(), address, "{text}");
        }
        let contact = Contact::parse("help@shop.example");
        for page in [help(ORIGIN, contact.as_ref()), about(ORIGIN, contact.as_ref())] {
            assert!(page.contains("mailto:help@shop.example"), "{page}");
        }
        assert!(about(ORIGIN, None).contains("has given no address"));
    }

    #[test]
    fn the_page_for_agents_has_one_command_per_program() {
        let page = connect(ORIGIN);
        assert!(page.contains("claude mcp add --transport http surety https://shop.example/mcp"));
        assert!(page.matches("data-copy=").count() >= 6);
    }
}
