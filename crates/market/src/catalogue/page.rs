//! Pages of listings. Each page reads at most [`MAX_SCANNED`] listings, however many there are.
//!
//! ```text
//! no selective filter                     reads the index of the sort order, from the cursor up to the limit
//! words, a seller, a minimum reputation   finds the newest matching listings first, and sorts them
//! ```
//!
//! Indexes contain the filtered columns, so that only listings on the page are read in full. If the limit is reached
//! first, the page is short, and its cursor continues after the limit.

use serde::Deserialize;
use sql::{DatabaseError, One, Read, ReadDatabase};

use super::{
    DeliveryMode, Filter, LISTING_JSON, MAX_PAGE, MAX_SCANNED, Page, Sort,
    discovery::{Question, Ranked},
    parameters::Parameters,
    terms, words,
};

#[derive(Deserialize)]
struct PageRow {
    /// Cursor for the page after this row.
    cursor: String,
    /// Listing as JSON; `None` in the additional row that marks where reading stopped at [`MAX_SCANNED`] listings.
    json: Option<String>,
}

/// Returns a page of the listings that match a filter. If no listing has all words of the search, returns listings with
/// some of the words, or with similar ones.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn page(db: &impl ReadDatabase, filter: &Filter) -> Result<Page, DatabaseError> {
    let Some(question) = filter.words.as_deref().map(Question::of) else { return exact_page(db, filter).await };
    if question.is_empty() {
        return Ok(Page { json: "[]".into(), ..Page::default() });
    }
    let page = exact_page(db, filter).await?;
    if page.json != "[]" || filter.cursor.is_some() {
        return Ok(page);
    }
    let mut bound = Parameters::default();
    let condition = filter.conditions(&mut bound);
    let ranked = question.ranked(
        &mut bound,
        &Ranked {
            condition: &condition,
            with_sellers: filter.min_reputation.is_some(),
            listing: LISTING_JSON,
            limit: filter.page_size(),
            offset: 0,
        },
    );
    let found: Vec<String> = db.read(Read::new(ranked, bound.0)).await?;
    Ok(Page { json: format!("[{}]", found.join(",")), next: None, some_words: !found.is_empty() })
}

/// Reads the listings that have all words of a filter, in one batch.
async fn exact_page(db: &impl ReadDatabase, filter: &Filter) -> Result<Page, DatabaseError> {
    let limit = filter.page_size();
    let (found, edge): (Vec<PageRow>, Vec<PageRow>) =
        db.read(filter.query(limit)).await?.into_iter().partition(|row| row.json.is_some());
    let shown = || found.iter().take(limit as usize);
    let next = if found.len() > limit as usize { shown().next_back() } else { edge.first() };
    let json: Vec<&str> = shown().filter_map(|row| row.json.as_deref()).collect();
    Ok(Page { json: format!("[{}]", json.join(",")), next: next.map(|row| row.cursor.clone()), some_words: false })
}

/// Counts the listings that match a filter, among the newest [`MAX_SCANNED`].
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn count(db: &impl ReadDatabase, filter: &Filter) -> Result<u64, DatabaseError> {
    if filter.words.is_some() && filter.match_text().is_none() {
        return Ok(0);
    }
    let counted = Filter { cursor: None, sort: Sort::Newest, ..filter.clone() }.count_query();
    let One(counted) = db.read(counted).await?;
    Ok(counted)
}

/// Value that is less than any sort key or sequence number.
const NONE: i64 = i64::MIN;

/// SQL fragments for one sort order of listings.
struct Order {
    /// SQL expression for the integer to sort by, in descending order.
    key: &'static str,
    /// SQL expression for the second sort key, before the sequence number.
    second_key: &'static str,
    /// Terms of `ORDER BY`, in the order of the index.
    by: &'static str,
    /// SQL table or join that yields listings in this order.
    from: &'static str,
}

/// SQL join that yields sellers by descending reputation, with their listings.
const BY_SELLERS: &str = "sellers INDEXED BY sellers_by_reputation CROSS JOIN listings INDEXED BY listings_by_seller \
    ON seller_address = address AND visible_listings > 0 AND hidden_at_ms IS NULL";

impl Order {
    const fn of(sort: Sort) -> Self {
        let (key, by, from) = match sort {
            Sort::Newest => ("seq", "seq DESC", "listings INDEXED BY listings_shown"),
            Sort::Popular => {
                ("listings.sales", "listings.sales DESC, order_seq DESC", "listings INDEXED BY listings_by_sales")
            }
            Sort::PriceAsc => {
                ("negated_price", "negated_price DESC, order_seq DESC", "listings INDEXED BY listings_by_negated_price")
            }
            Sort::PriceDesc => {
                ("price_lovelace", "price_lovelace DESC, order_seq DESC", "listings INDEXED BY listings_by_price")
            }
            Sort::Reputation => {
                let by = "reputation DESC, latest_seq DESC, address DESC, seq DESC";
                return Self { key: "reputation", second_key: "latest_seq", by, from: BY_SELLERS };
            }
        };
        Self { key, second_key: "0", by, from }
    }
}

impl Filter {
    /// Returns the maximum number of listings on a page.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.limit.unwrap_or(MAX_PAGE)
    }

    /// Returns the number of scans of the full-text index that a page of this filter needs.
    #[must_use]
    pub fn index_scans(&self) -> usize {
        self.words.as_deref().map_or(0, |text| words(text).len())
    }

    /// Returns the full-text query that requires all words of the filter. The last word also matches longer words that
    /// begin with it. Returns `None` if the filter has no words.
    fn match_text(&self) -> Option<String> {
        let words = words(self.words.as_deref()?);
        let last = words.len().saturating_sub(1);
        let queries = words.into_iter().enumerate().filter_map(|(place, word)| terms::query(word, place == last));
        let queries = queries.collect::<Vec<_>>();
        (!queries.is_empty()).then(|| queries.join(" AND "))
    }

    fn query(&self, limit: u32) -> Read<Vec<PageRow>> {
        let mut bound = Parameters::default();
        let picked = match self.candidates(&mut bound) {
            Some(found) => self.sort_candidates(&found, limit, &mut bound),
            None => self.scan_index(limit, &mut bound),
        };
        let sql = format!(
            "WITH {picked} SELECT k || '.' || s AS cursor, NULL AS json FROM edge WHERE s > {NONE} UNION ALL \
             SELECT * FROM (SELECT k || '.' || s, {LISTING_JSON} FROM picked CROSS JOIN listings ON seq = s \
               LEFT JOIN sellers ON address = seller_address ORDER BY k DESC, n DESC, s DESC)"
        );
        Read::new(sql, bound.0)
    }

    fn count_query(&self) -> Read<One<u64>> {
        let mut bound = Parameters::default();
        let found = self.candidates(&mut bound).unwrap_or_else(|| {
            format!("SELECT seq FROM listings INDEXED BY listings_shown WHERE hidden_at_ms IS NULL ORDER BY seq DESC LIMIT {MAX_SCANNED}")
        });
        let sellers = match self.min_reputation.is_some() {
            true => "CROSS JOIN sellers ON address = seller_address",
            false => "",
        };
        let wanted = self.conditions(&mut bound);
        let sql = format!(
            "WITH found (which) AS MATERIALIZED ({found}) SELECT count(*) FROM found \
             CROSS JOIN listings INDEXED BY listings_shown ON seq = which {sellers} WHERE {wanted}"
        );
        Read::new(sql, bound.0)
    }

    /// Returns the SQL that selects candidates for the page by an index of words, sellers or reputations. Returns
    /// `None` if the filter has none of them, so that the page must be read from the index of the sort order.
    fn candidates(&self, bound: &mut Parameters) -> Option<String> {
        let newest = self.cursor.filter(|_| self.sort == Sort::Newest);
        let before = |column: &str, bound: &mut Parameters| {
            newest.map(|cursor| format!(" AND {column} < {}", bound.name(cursor.seq))).unwrap_or_default()
        };
        if let Some(text) = self.match_text() {
            let (text, before) = (bound.name(text), before("rowid", bound));
            return Some(format!(
                "SELECT rowid FROM listings_text WHERE listings_text MATCH {text}{before} ORDER BY rowid DESC LIMIT {MAX_SCANNED}"
            ));
        }
        if let Some(seller) = self.seller {
            let (seller, before) = (bound.name(seller), before("seq", bound));
            return Some(format!(
                "SELECT seq FROM listings INDEXED BY listings_by_seller WHERE seller_address = {seller} \
                 AND hidden_at_ms IS NULL{before} ORDER BY seq DESC LIMIT {MAX_SCANNED}"
            ));
        }
        let least = self.min_reputation_condition(bound).filter(|_| self.sort != Sort::Reputation)?;
        Some(format!("SELECT seq FROM {BY_SELLERS} WHERE {least} ORDER BY reputation DESC LIMIT {MAX_SCANNED}"))
    }

    /// Returns the SQL condition for the minimum reputation.
    fn min_reputation_condition(&self, bound: &mut Parameters) -> Option<String> {
        let score = i64::from(self.min_reputation?);
        Some(format!("reputation >= {}", bound.name(score)))
    }

    /// Returns the SQL condition for listings that are not hidden and match the filter.
    fn conditions(&self, bound: &mut Parameters) -> String {
        let mut wanted = vec!["hidden_at_ms IS NULL".to_owned()];
        wanted.extend(self.category.map(|category| format!("category = {}", bound.name(category))));
        wanted.extend(self.mode.map(|mode| match mode {
            DeliveryMode::Instant => "instant = 1".to_owned(),
            DeliveryMode::Protected => "protected = 1".to_owned(),
        }));
        wanted.extend(self.max_price.map(|price| format!("price_lovelace <= CAST({} AS INTEGER)", bound.name(price))));
        wanted.extend(self.seller.map(|seller| format!("seller_address = {}", bound.name(seller))));
        wanted.extend(self.min_reputation_condition(bound));
        wanted.join(" AND ")
    }

    /// Returns the SQL condition for listings after the cursor.
    fn after_cursor(&self, bound: &mut Parameters) -> String {
        let Some(cursor) = self.cursor else { return "TRUE".into() };
        let seq = bound.name(cursor.seq);
        match self.sort {
            Sort::Newest => format!("seq < {seq}"),
            Sort::Popular | Sort::PriceAsc | Sort::PriceDesc => {
                format!("({}, order_seq) < ({}, {seq})", Order::of(self.sort).key, bound.name(cursor.key))
            }
            Sort::Reputation => {
                let newest = format!(
                    "coalesce((SELECT s.latest_seq FROM listings l JOIN sellers s ON s.address = l.seller_address \
                     WHERE l.seq = {seq}), {seq})"
                );
                let key = bound.name(cursor.key);
                format!("(reputation, latest_seq) <= ({key}, {newest}) AND (latest_seq <> {newest} OR seq < {seq})")
            }
        }
    }

    /// Returns the SQL that reads a page directly from the index of the requested sort order.
    fn scan_index(&self, limit: u32, bound: &mut Parameters) -> String {
        let Order { key, second_key, by, from } = Order::of(self.sort);
        let (behind, wanted) = (self.after_cursor(bound), self.conditions(bound));
        let within = match self.sort {
            Sort::Newest => "seq >= (SELECT s FROM edge)".to_owned(),
            Sort::Popular | Sort::PriceAsc | Sort::PriceDesc => {
                format!("({key}, order_seq) >= (SELECT k, s FROM edge)")
            }
            Sort::Reputation => "(reputation, latest_seq) >= (SELECT k, n FROM edge) \
                AND (latest_seq <> (SELECT n FROM edge) OR seq >= (SELECT s FROM edge))"
                .to_owned(),
        };
        format!(
            "edge AS MATERIALIZED (SELECT coalesce(max(k), {NONE}) AS k, coalesce(max(n), {NONE}) AS n, \
               coalesce(max(s), {NONE}) AS s FROM (SELECT {key} AS k, {second_key} AS n, seq AS s FROM {from} \
                 WHERE hidden_at_ms IS NULL AND {behind} ORDER BY {by} LIMIT 1 OFFSET {MAX_SCANNED} - 1)), \
             picked AS MATERIALIZED (SELECT {key} AS k, {second_key} AS n, seq AS s FROM {from} \
               WHERE {wanted} AND {behind} AND {within} ORDER BY {by} LIMIT {limit} + 1)"
        )
    }

    /// Returns the SQL that sorts the candidates that the query `found` selects, and picks the page.
    fn sort_candidates(&self, found: &str, limit: u32, bound: &mut Parameters) -> String {
        let Order { key, second_key, by, .. } = Order::of(self.sort);
        let (behind, wanted) = (self.after_cursor(bound), self.conditions(bound));
        let sellers = match self.sort == Sort::Reputation || self.min_reputation.is_some() {
            true => "CROSS JOIN sellers ON address = seller_address",
            false => "",
        };
        format!(
            "edge (k, s) AS (SELECT 0, {NONE}), found (which) AS MATERIALIZED ({found}), \
             picked AS MATERIALIZED (SELECT {key} AS k, {second_key} AS n, seq AS s FROM found \
               CROSS JOIN listings INDEXED BY listings_shown ON seq = which {sellers} \
               WHERE {wanted} AND {behind} ORDER BY {by} LIMIT {limit} + 1)"
        )
    }
}
