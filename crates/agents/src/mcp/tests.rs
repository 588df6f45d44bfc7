//! Tests of the tools with a fake shop that keeps its state in a few fields.

use std::{cell::RefCell, rc::Rc};

use api_types::{
    AgentRules, Bought, BuyerAction, Listing, Purchase, PurchaseRequest, PurchaseStatus, RequestStatus,
    SubmittedAction, Withdrawal, check,
    mcp::{FoundListings, OwnPurchases, ShownListing},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use cardano::{ContentHash, Lovelace, TxHash};
use futures_lite::future::block_on;
use market::{
    account::{Account, DEMO_OWNER},
    catalogue::{Filter, ListingTerms, Page},
    checkout::{OwnPurchase, Presentation},
    listing::{DeliveryMode, ListingId},
    purchase::Cursor,
};
use serde_json::{Map, Value, json};

use super::{
    open::OpenTools,
    shop::*,
    tool::Toolset,
    tools::OwnerTools,
    view::{PAGE_BYTES, content_page},
};

const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
pub(super) const ID: &str = "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV";

pub(super) struct Owner(Account);

impl Owner {
    fn named(owner: &str) -> Self {
        Self(Account {
            owner: owner.into(),
            wallet_address: SELLER.parse().unwrap(),
            key_version: 1,
            max_per_payment: Lovelace::from_ada(10),
            daily_budget: Lovelace::from_ada(30),
            ask_above: Some(Lovelace::from_ada(3)),
            rules: AgentRules { protected_only: true, min_reputation: 80, agents_paused: false },
            authorization: None,
        })
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::named(SELLER)
    }
}

#[derive(Default)]
pub(super) struct Stall {
    pub filters: RefCell<Vec<Filter>>,
    pub bought: RefCell<Vec<DeliveryMode>>,
    pub shown: RefCell<Vec<Presentation>>,
    pub content: Option<String>,
    pub listed: Option<ContentHash>,
    pub refusal: Option<ShopError>,
    /// Whether searches match only some of their words.
    pub some: bool,
    /// Owner of the account that calls the tools.
    pub account: Owner,
    /// Whether the account already owns the requested listing.
    pub owned: bool,
    /// Whether purchases need the owner's approval.
    pub asks: bool,
}

impl Stall {
    fn listed(&self) -> ContentHash {
        self.listed.unwrap_or_else(|| ContentHash::of(self.content.clone().unwrap_or_default().as_bytes()))
    }
    fn refuse(&self) -> Result<(), ShopError> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

pub(super) fn listing(id: &str) -> Listing {
    Listing {
        id: id.to_owned(),
        title: "A hero".into(),
        description: "With a gradient".into(),
        price_lovelace: Lovelace::from_ada(5),
        seller_address: SELLER.parse().unwrap(),
        modes: vec![DeliveryMode::Instant],
        content_hash: ContentHash::of(b"prompt"),
        preview_media: None,
        category: None,
        excerpt: None,
        content_stats: None,
        seller_name: None,
        created_at: Some(1),
        sales: Some(0),
        seller_reputation: None,
    }
}

fn purchase() -> Purchase {
    let id = TxHash::new([7; 32]);
    Purchase {
        id,
        listing_id: ID.into(),
        mode: DeliveryMode::Instant,
        buyer_address: SELLER.parse().unwrap(),
        tx_hash: id,
        status: PurchaseStatus::Settled,
        events: vec![],
        escrow: None,
        verification: None,
        paid_from_balance: None,
        decision: None,
    }
}

impl Shelf for Stall {
    fn origin(&self) -> String {
        "https://surety.example.com".into()
    }
    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        self.filters.borrow_mut().push(filter);
        if self.some {
            let of = |title: &str, description: &str| Listing {
                title: title.into(),
                description: description.into(),
                ..listing(ID)
            };
            let some = json!([of("Pricing", "x"), of("A hero of glass", "x")]);
            let words = self.filters.borrow().last().and_then(|filter| filter.words.clone()).unwrap_or_default();
            let json = if words == "zebra" { "[]".into() } else { some.to_string() };
            return Ok(Page { some_words: json != "[]", json, next: None });
        }
        Ok(Page { json: json!([listing(ID)]).to_string(), next: Some("7.1".into()), some_words: false })
    }
    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        self.refuse()?;
        Ok(json!(listing(id.as_str())).to_string())
    }
}

impl Shop for Stall {
    fn shelf(&self) -> &impl Shelf {
        self
    }
    fn account(&self) -> &Account {
        &self.account.0
    }
    async fn owned(&self, _: &ListingId) -> Result<Option<TxHash>, ShopError> {
        Ok(self.owned.then(|| TxHash::new([7; 32])))
    }
    async fn buy(
        &self,
        _: &ListingId,
        mode: DeliveryMode,
        expected_price: Option<Lovelace>,
    ) -> Result<Ordered, ShopError> {
        self.refuse()?;
        assert!(expected_price.is_none_or(|price| price == Lovelace::from_ada(5)), "no test agrees to another price");
        let listing = Rc::new(ListingTerms {
            id: ID.parse().unwrap(),
            title: "A hero".into(),
            price_lovelace: Lovelace::from_ada(5),
            seller_address: SELLER.parse().unwrap(),
            content_hash: self.listed(),
            modes: vec![mode],
            excerpt: None,
            content_stats: None,
            hidden: false,
        });
        if self.asks {
            let request = PurchaseRequest {
                id: "0a".repeat(16),
                listing_id: ID.into(),
                title: "A hero".into(),
                mode,
                price_lovelace: Lovelace::from_ada(5),
                client_name: "Test".into(),
                status: RequestStatus::Waiting,
                expires_at: 1_790_000_000_000,
                tx: None,
            };
            return Ok(Ordered { listing, outcome: OrderOutcome::Asked(request) });
        }
        self.bought.borrow_mut().push(mode);
        let outcome = match &self.content {
            Some(content) => {
                let (content, already_owned) = (content.clone(), self.owned);
                OrderOutcome::Bought(Box::new(Bought { purchase: purchase(), content, already_owned }))
            }
            None => OrderOutcome::Pending(TxHash::new([7; 32])),
        };
        Ok(Ordered { listing, outcome })
    }
    async fn purchases(&self, _: Option<Cursor>) -> Result<(Vec<Purchase>, Option<Cursor>), ShopError> {
        Ok((vec![purchase()], None))
    }
    async fn status(&self, _: &TxHash, with_content: bool) -> Result<OwnPurchase, ShopError> {
        self.refuse()?;
        let content = if with_content { self.content.clone() } else { None };
        Ok(OwnPurchase { purchase: Some(purchase()), content_hash: self.listed(), content })
    }
    async fn wallet(&self) -> Result<WalletState, ShopError> {
        Ok(WalletState { balance: Lovelace::from_ada(12), spent_today: Lovelace::ZERO })
    }
    async fn withdraw(&self) -> Result<Withdrawal, ShopError> {
        Err(ShopError::DemoWallet)
    }
    async fn act(&self, purchase: &TxHash, action: BuyerAction) -> Result<SubmittedAction, ShopError> {
        self.refuse()?;
        Ok(SubmittedAction { purchase: *purchase, action, tx: TxHash::new([8; 32]) })
    }
}

impl OpenShop for Stall {
    async fn unlock(&self, _: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError> {
        self.shown.borrow_mut().push(shown.clone());
        let required = json!({ "x402Version": 2, "error": "Payment required", "accepts": [] });
        Ok(match (shown.payment, &self.content) {
            (None, _) => Unlocked::PaymentRequired { required, settlement: None },
            (Some(_), None) => Unlocked::PaymentRequired { required, settlement: Some(json!({ "success": false })) },
            (Some(_), Some(content)) => Unlocked::Delivered {
                content: content.clone(),
                listed_hash: self.listed(),
                settlement: Some(json!({ "success": true, "transaction": "ab" })),
                purchase: None,
            },
        })
    }
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

impl super::tool::ToolResult {
    fn value(&self) -> Value {
        serde_json::from_str(self.structured.as_deref().unwrap()).unwrap()
    }
}

fn call(stall: &Stall, tool: &str, with: Value) -> super::tool::ToolResult {
    let endpoint = OwnerTools(stall);
    block_on(endpoint.call(tool, arguments(with), &Map::new())).unwrap()
}

fn unlock(stall: &Stall, with: Value, meta: Value) -> super::tool::ToolResult {
    block_on(OpenTools(stall).call("unlock_listing", arguments(with), &arguments(meta))).unwrap()
}

#[test]
fn a_search_reaches_the_catalogue_with_every_filter() {
    let stall = Stall::default();
    let found = call(
        &stall,
        "search_listings",
        json!({ "query": "hero", "category": "saas", "mode": "protected", "maxPriceAda": 12.3, "minReputation": 90,
            "sort": "price_asc", "limit": 5, "cursor": "3.4" }),
    );
    assert_eq!((&found.value()["listings"][0]["id"], &found.value()["nextCursor"]), (&json!(ID), &json!("7.1")));
    assert_eq!(found.value()["listings"][0]["priceTada"], "5");
    let filter = stall.filters.borrow()[0].clone();
    assert_eq!((filter.category, filter.mode, filter.limit), (Some("SaaS"), Some(DeliveryMode::Protected), Some(5)));
    assert_eq!(filter.max_price.unwrap().get(), 12_300_000);
    assert!(filter.cursor.is_some() && filter.words.as_deref() == Some("hero"));
}

#[test]
fn numbers_are_taken_as_models_write_them() {
    let stall = Stall::default();
    let asked = json!({ "minReputation": 80.0, "limit": 5.0, "maxPriceAda": 12 });
    assert!(!call(&stall, "search_listings", asked).is_error);
    let filter = stall.filters.borrow()[0].clone();
    assert_eq!((filter.min_reputation, filter.limit), (Some(80), Some(5)));
    for (tool, name, args) in [
        ("search_listings", "maxPriceAda", json!({ "maxPriceAda": "5" })),
        ("search_listings", "limit", json!({ "limit": "5" })),
        ("get_purchase_status", "contentOffset", json!({ "tx": "07".repeat(32), "contentOffset": "0" })),
    ] {
        let text = call(&stall, tool, args).text.unwrap();
        assert_eq!(text, format!("{name}: must be a number, for example 5."));
    }
    for broken in [json!({ "limit": 5.5 }), json!({ "minReputation": -1.0 })] {
        assert!(call(&stall, "search_listings", broken).is_error);
    }
}

#[test]
fn a_search_says_whether_its_listings_have_some_of_the_words_alone() {
    let stall = Stall { some: true, ..Stall::default() };
    let found = call(&stall, "search_listings", json!({ "query": "glass pricing hero" })).value();
    let titles: Vec<&str> =
        found["listings"].as_array().unwrap().iter().filter_map(|one| one["title"].as_str()).collect();
    assert_eq!(titles, ["Pricing", "A hero of glass"]);
    assert_eq!(found["matched"], "some words");
    let all = call(&Stall::default(), "search_listings", json!({ "query": "hero" })).value();
    assert!(all.get("matched").is_none());
    let none = call(&stall, "search_listings", json!({ "query": "zebra" })).value();
    assert!(none["next"].as_str().unwrap().contains("fewer filters"), "{none}");
}

#[test]
fn unlocking_an_owned_listing_says_so_and_spends_nothing() {
    let owner = Stall { content: Some("prompt".into()), owned: true, ..Stall::default() };
    let listing = call(&owner, "get_listing", json!({ "id": ID })).value();
    assert_eq!((&listing["owned"], &listing["purchase"]), (&json!(true), &json!("07".repeat(32))));
    let again = call(&owner, "buy_listing", json!({ "id": ID, "mode": "instant" })).value();
    assert_eq!(
        (&again["alreadyOwned"], &again["paidNow"], &again["paidTada"]),
        (&json!(true), &json!("0"), &json!("5"))
    );
    let page = "https://surety.example.com/purchases/".to_owned() + &"07".repeat(32);
    assert_eq!(again["links"]["purchase"], page);
    let first = call(&Stall { owned: false, ..owner }, "buy_listing", json!({ "id": ID, "mode": "instant" })).value();
    assert_eq!(first["paidNow"], "5");
    assert_eq!(call(&Stall::default(), "get_listing", json!({ "id": ID })).value()["owned"], false);
}

#[test]
fn a_call_of_an_unknown_tool_names_the_known_tools() {
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "buy", "arguments": {} } });
    let message = super::message::parse(body.to_string().as_bytes(), true).unwrap();
    let headers = super::revision::Headers { protocol_version: Some("2025-11-25".into()), method: None, name: None };
    let answer = block_on(super::dispatch::answer(&OwnerTools(&Stall::default()), &headers, message)).body.unwrap();
    for tool in ["search_listings", "buy_listing", "my_wallet", "withdraw_to_owner", "my_purchases"] {
        assert!(answer.contains(tool), "{answer}");
    }
}

#[test]
fn wrong_arguments_are_explained_and_spend_nothing() {
    let stall = Stall { content: Some("x".into()), ..Stall::default() };
    for (tool, wrong) in [
        ("buy_listing", json!({ "id": ID })),
        ("buy_listing", json!({ "id": ID, "mode": "free" })),
        ("buy_listing", json!({ "id": ID, "mode": "instant", "maxPriceAda": 1 })),
        ("buy_listing", json!({ "id": ID, "mode": "instant", "priceLovelace": "5 ADA" })),
        ("buy_listing", json!({ "id": ID, "mode": "instant", "priceLovelace": 5_000_000 })),
        ("buy_listing", json!({ "id": "nothing", "mode": "instant" })),
        ("search_listings", json!({ "maxPriceAda": -1 })),
        ("search_listings", json!({ "category": "Cars" })),
        ("search_listings", json!({ "limit": 0 })),
        ("search_listings", json!({ "minReputation": 101 })),
        ("search_listings", json!({ "cursor": "x" })),
        ("search_listings", json!({ "query": "x".repeat(201) })),
        ("get_purchase_status", json!({ "tx": "AB" })),
        ("my_purchases", json!({ "cursor": "x" })),
        ("my_purchases", json!({ "cursor": "7.AB" })),
        ("my_wallet", json!({ "x": 1 })),
    ] {
        let answer = call(&stall, tool, wrong.clone());
        assert!(answer.is_error && answer.structured.is_none(), "{tool} {wrong}");
        assert!(answer.text.unwrap().ends_with('.'), "{tool} {wrong}");
    }
    assert!(stall.bought.borrow().is_empty() && stall.filters.borrow().is_empty());
}

#[test]
fn an_invalid_cursor_is_named_in_the_error() {
    let text = call(&Stall::default(), "my_purchases", json!({ "cursor": "x" })).text.unwrap();
    assert_eq!(text, "cursor: must be the nextCursor of an earlier result of my_purchases.");
    let cursor = format!("1750000000000.{}", "07".repeat(32));
    assert!(!call(&Stall::default(), "my_purchases", json!({ "cursor": cursor })).is_error);
}

#[test]
fn a_purchase_says_whether_its_content_matches_the_listing() {
    let honest = Stall { content: Some("prompt".into()), ..Stall::default() };
    let bought = call(&honest, "buy_listing", json!({ "id": ID, "mode": "instant" })).value();
    assert_eq!((&bought["status"], &bought["contentMatches"]), (&json!("delivered"), &json!(true)));
    assert_eq!(bought["content"]["text"], "prompt");
    assert_eq!(bought["paidLovelace"], "5000000");

    let false_one = Stall { listed: Some(ContentHash::of(b"other")), ..honest };
    let bought = call(&false_one, "buy_listing", json!({ "id": ID, "mode": "instant" })).value();
    assert_eq!(bought["contentMatches"], false);
    assert!(bought["next"].as_str().unwrap().contains("not what was listed"));
}

#[test]
fn a_purchase_that_waits_for_its_block_names_the_next_call() {
    let bought = call(&Stall::default(), "buy_listing", json!({ "id": ID, "mode": "protected" })).value();
    assert_eq!(bought["status"], "pending");
    assert!(bought.get("content").is_none());
    assert!(bought["next"].as_str().unwrap().contains("get_purchase_status"));
}

#[test]
fn a_purchase_that_waits_for_approval_is_no_error_and_links_to_the_approval() {
    let stall = Stall { asks: true, ..Stall::default() };
    let answer = call(&stall, "buy_listing", json!({ "id": ID, "mode": "instant" }));
    assert!(!answer.is_error);
    let told = answer.value();
    assert_eq!((&told["status"], &told["paidNow"]), (&json!("awaiting_approval"), &json!("0")));
    let page = "https://surety.example.com/me/requests/".to_owned() + &"0a".repeat(16);
    let approval = json!({
        "page": page, "command": format!("surety --api https://surety.example.com approve {}", "0a".repeat(16)), "title": "A hero", "priceLovelace": "5000000", "priceTada": "5",
        "expiresAt": "1790000000000", "expiresAtIso": "2026-09-21T14:13:20Z",
    });
    assert_eq!(told["approval"], approval);
    assert!(told.get("tx").is_none() && told.get("links").is_none());
    assert!(told["next"].as_str().unwrap().contains("call buy_listing again"));
    assert_eq!(call(&stall, "my_wallet", json!({})).value()["askAboveTada"], "3");
}

#[test]
fn long_contents_are_paged_without_loss_in_any_script() {
    // Latin, Japanese, Hindi, cuneiform with emoji, and text that JSON escapes.
    for alphabet in ["The quick brown fox. ", "桜の花びら、", "नमस्ते दुनिया ", "𒀀𒁀𒂀👩\u{200d}🚀", "\"\\\n\t\u{1}\u{1f}"]
    {
        let content: String = alphabet.chars().cycle().take(60_000).collect();
        let stall = Stall { content: Some(content.clone()), ..Stall::default() };
        let bought = call(&stall, "buy_listing", json!({ "id": ID, "mode": "instant" })).value();
        let mut pages = vec![bought["content"].clone()];
        while let Some(offset) = pages.last().and_then(|page| page["nextOffset"].as_u64()) {
            let tx = "07".repeat(32);
            let page = call(&stall, "get_purchase_status", json!({ "tx": tx, "contentOffset": offset })).value();
            assert_eq!(page["contentMatches"], true);
            pages.push(page["content"].clone());
        }
        let text: String = pages.iter().map(|page| page["text"].as_str().unwrap()).collect();
        assert_eq!(text, content, "{alphabet}");
        for page in &pages {
            // The text is between quotes. A client that truncates results at 25,000 tokens reads all of it, because a
            // token has at least one byte with every tokenizer.
            assert!(page["text"].to_string().len() <= PAGE_BYTES + 2, "{alphabet}");
        }
        let full = pages[0]["text"].to_string().len();
        assert!(full > PAGE_BYTES - 6, "{alphabet}: {full} bytes, more would fit");
    }
    assert_eq!(content_page("short", u32::MAX).text, "");
}

#[test]
fn refusals_of_the_shop_say_what_to_do_next() {
    let refusals = [
        (ShopError::NoListing, "search_listings"),
        (ShopError::ModeNotOffered(DeliveryMode::Protected), "get_listing"),
        (ShopError::OverPurchaseLimit { price: Lovelace::from_ada(12), limit: Lovelace::from_ada(10) }, "12 tADA"),
        (ShopError::OverDailyBudget { price: Lovelace::from_ada(9), left: Lovelace::from_ada(1) }, "midnight"),
        (ShopError::TooLittle { missing: Lovelace::from_ada(7), address: "addr_test1q".into() }, "addr_test1q"),
        (ShopError::Declined, "the owner declined"),
        (ShopError::TooManyWaiting, "https://surety.example.com/me"),
        (ShopError::RateLimited("too many purchases: try again in 60 seconds".into()), "in 60 seconds"),
        (ShopError::Unavailable("D1 said no".into()), "Make the same call again"),
    ];
    for (refusal, hint) in refusals {
        let stall = Stall { refusal: Some(refusal), ..Stall::default() };
        let answer = call(&stall, "buy_listing", json!({ "id": ID, "mode": "instant" }));
        let text = answer.text.unwrap();
        assert!(answer.is_error && text.contains(hint) && !text.contains("D1"), "{text}");
    }
}

#[test]
fn a_limit_refusal_says_who_can_change_the_limit() {
    let over = ShopError::OverPurchaseLimit { price: Lovelace::from_ada(12), limit: Lovelace::from_ada(10) };
    let spent = ShopError::OverDailyBudget { price: Lovelace::from_ada(12), left: Lovelace::from_ada(10) };
    let rules = [ShopError::Paused, ShopError::ProtectedOnly, ShopError::Reputation { least: 80 }];
    for refusal in [over, spent].into_iter().chain(rules) {
        let said = |demo: bool| {
            let account = Owner::named(if demo { DEMO_OWNER } else { SELLER });
            let stall = Stall { refusal: Some(refusal.clone()), account, ..Stall::default() };
            call(&stall, "buy_listing", json!({ "id": ID, "mode": "instant" })).text.unwrap()
        };
        assert!(
            said(false).contains("The owner does so at https://surety.example.com/me, or by `surety "),
            "{}",
            said(false)
        );
        assert!(said(true).contains("demo wallet") && !said(true).contains("owner allows"), "{}", said(true));
    }
}

#[test]
fn a_paused_agent_neither_withdraws_nor_acts_on_a_purchase() {
    let mut account = Owner::default();
    account.0.rules.agents_paused = true;
    let stall = Stall { account, ..Stall::default() };
    for (tool, arguments) in
        [("withdraw_to_owner", json!({})), ("act_on_purchase", json!({ "tx": "07".repeat(32), "action": "dispute" }))]
    {
        let answer = call(&stall, tool, arguments);
        let text = answer.text.unwrap();
        assert!(
            answer.is_error && text.contains("paused all agents") && text.contains("surety agents resume"),
            "{text}"
        );
    }
}

#[test]
fn an_owners_agent_acts_on_a_purchase_and_nobody_does_on_the_demo_wallets() {
    let arguments = json!({ "tx": "07".repeat(32), "action": "dispute" });
    let told = call(&Stall::default(), "act_on_purchase", arguments.clone());
    let structured = told.value();
    assert_eq!((&structured["action"], &structured["tx"]), (&json!("dispute"), &json!("08".repeat(32))));
    let demo = Stall { account: Owner::named(DEMO_OWNER), ..Stall::default() };
    assert!(call(&demo, "act_on_purchase", arguments).is_error);
    assert!(call(&Stall::default(), "act_on_purchase", json!({ "tx": "07".repeat(32), "action": "steal" })).is_error);
}

#[test]
fn the_demo_wallet_is_named_as_such_and_cannot_be_withdrawn() {
    let stall = Stall { account: Owner::named(DEMO_OWNER), ..Stall::default() };
    assert_eq!(call(&stall, "my_wallet", json!({})).value()["sharedDemoWallet"], true);
    assert!(call(&stall, "withdraw_to_owner", json!({})).is_error);
}

#[test]
fn an_unpaid_unlock_is_an_error_with_the_requirements_as_content_and_metadata() {
    let answer = unlock(&Stall { content: Some("prompt".into()), ..Stall::default() }, json!({ "id": ID }), json!({}));
    assert!(answer.is_error && answer.text.is_none(), "the text is the structured content");
    assert_eq!(answer.value(), answer.meta["x402/error"]);
    assert!(!answer.value().to_string().contains("prompt"));
}

#[test]
fn a_payment_comes_as_object_or_as_base64_and_the_settlement_goes_back() {
    let payment = json!({ "x402Version": 2, "payload": {} });
    let stall = Stall { content: Some("prompt".into()), ..Stall::default() };
    for sent in [payment.clone(), json!(BASE64_STANDARD.encode(payment.to_string()))] {
        let answer = unlock(&stall, json!({ "id": ID }), json!({ "x402/payment": sent }));
        assert!(!answer.is_error);
        assert_eq!(answer.value()["content"]["text"], "prompt");
        assert_eq!(answer.meta["x402/payment-response"]["success"], true);
    }
    let header = Some(BASE64_STANDARD.encode(payment.to_string()));
    assert!(stall.shown.borrow().iter().all(|shown| shown.payment == header && shown.proof.is_none()));
}

#[test]
fn a_payment_of_another_shape_is_not_passed_on() {
    let stall = Stall { content: Some("prompt".into()), ..Stall::default() };
    // An object with thousands of values, though short in base64.
    let many = json!(BASE64_STANDARD.encode(json!({ "a": vec![0; 2_000] }).to_string()));
    for sent in [json!(1), json!("%%%"), json!("bnVsbA=="), json!([]), json!(null), many] {
        assert!(unlock(&stall, json!({ "id": ID }), json!({ "x402/payment": sent })).is_error);
    }
    assert!(stall.shown.borrow().is_empty());
}

#[test]
fn a_settlement_that_failed_brings_no_content() {
    let answer = unlock(&Stall::default(), json!({ "id": ID }), json!({ "x402/payment": {} }));
    assert!(answer.is_error);
    assert_eq!(answer.meta["x402/payment-response"]["success"], false);
}

#[test]
fn a_tools_answer_has_the_fields_of_its_type_beside_the_text() {
    fn without_told(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !name.ends_with("Tada") && !name.ends_with("Iso"));
                fields.values_mut().for_each(without_told);
            }
            Value::Array(items) => items.iter_mut().for_each(without_told),
            _ => {}
        }
    }
    let stall = Stall { content: Some("prompt".into()), ..Stall::default() };
    let text = |tool, with| {
        let mut value = call(&stall, tool, with).value();
        without_told(&mut value);
        value.to_string()
    };
    check::exactly::<FoundListings>(&text("search_listings", json!({}))).unwrap();
    check::exactly::<ShownListing>(&text("get_listing", json!({ "id": ID }))).unwrap();
    check::exactly::<OwnPurchases>(&text("my_purchases", json!({}))).unwrap();
}

#[test]
fn each_endpoint_serves_its_own_tools() {
    let stall = Stall::default();
    assert!(block_on(OwnerTools(&stall).call("unlock_listing", Map::new(), &Map::new())).is_none());
    for tool in ["buy_listing", "my_wallet", "withdraw_to_owner", "my_purchases", "get_purchase_status"] {
        assert!(block_on(OpenTools(&stall).call(tool, Map::new(), &Map::new())).is_none(), "{tool}");
    }
}
