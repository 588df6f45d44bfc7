//! Buyers' payments: claimed in one batch with the entry that sends them, by conditions that only the database can hold.

use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
    slots::{Millis, SlotConfig},
};
use outbox::{Draft, ENTRY_JSON, Entry, Guard, Kind, MAX_ENDED, MAX_LAG_MS, MAX_LATE_MS, write_down};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Rows, Statement, exactly, statement};

use crate::{
    account::{Account, DAY_MS, Leave, day},
    listing::DeliveryMode,
    network,
    purchase::{Status, awaits},
};

/// A client's own name for a payment (x402's extension `payment-identifier`), with the digest of the payload that came with
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// The name.
    pub id: String,
    /// SHA-256 of the payload.
    pub payload: ContentHash,
}

/// A verified payment to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment<'a> {
    /// The transaction.
    pub tx: TxHash,
    /// Its bytes.
    pub cbor: &'a [u8],
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// The height of the newest block that was known when it was verified, where its payer did not sign the request.
    pub newest_height: Option<u64>,
    /// What is paid for.
    pub listing_id: &'a str,
    /// How.
    pub mode: DeliveryMode,
    /// Who pays.
    pub payer: Address,
    /// How much.
    pub amount: Lovelace,
    /// What the creator gets of a protected sale.
    pub creator: Lovelace,
    /// SHA-256 of what carried it here.
    pub header: ContentHash,
    /// The digest of the signed terms, where there are any: at most one transaction of a payer's may ever claim it, and none
    /// beside one that may take effect.
    pub terms_digest: Option<ContentHash>,
    /// The client's name for it.
    pub identifier: Option<Identifier>,
    /// What the transaction spends.
    pub inputs: &'a [TxRef],
    /// The network that it was handed in from, where that counts: an [unknown](network::UNKNOWN) one has no share.
    pub network: Option<&'a str>,
    /// The account whose service wallet pays.
    pub account: Option<&'a Account>,
    /// The hash of what is sold, where the database keeps it: it must be there.
    pub content: Option<ContentHash>,
    /// How many payments for it that took no effect, for all that was known, there were when the chain was asked for them
    /// ([`count_lost`]).
    pub looked: u32,
    /// How many payments of a service wallet for it took no effect lately, for all that was known when it was kept apart
    /// from them ([`ended_lately`]).
    pub ended: Option<usize>,
}

/// A payment that was claimed before.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRecord {
    /// The transaction's life.
    pub entry: Entry,
    /// What is paid for.
    pub listing_id: String,
    /// How.
    pub mode: DeliveryMode,
    /// Who pays.
    pub payer: Address,
    /// SHA-256 of what carried it here.
    pub header: ContentHash,
    /// Whether the content was handed out for it.
    pub delivered: bool,
    /// What became of the purchase that it made.
    pub status: Option<Status>,
    /// Whether content of a lock is given with its result only.
    pub results_first: bool,
    /// Whether its result was refused before: then ticks alone try it again.
    pub result_failed: bool,
    /// What its content waits for: nothing; the time until which a result is posted, POSIX ms; or 0: a result, or for ever.
    pub awaits: Option<Millis>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Written down: the caller submits.
    New(Entry),
    /// Claimed before.
    Known(Box<PaymentRecord>),
    /// Its payer owns the listing by this purchase: nothing is to be paid.
    Owned(TxHash),
    /// Its payer is paying for the listing already, by this transaction.
    Paying(TxHash),
    /// A payment of its payer for the listing took no effect for all that is known, and may be in a block ([`lost`]).
    MaybePaid,
    /// The terms belong to another transaction, for ever.
    TermsTaken,
    /// The identifier belongs to another payload.
    IdentifierTaken,
    /// Another payment of the service wallet for the listing took no effect meanwhile, for all that is known.
    Ended,
    /// Too many payments of this payer took no effect lately.
    TooManyRefused,
    /// Too many protected sales wait for their results.
    Crowded,
    /// An input is taken by another transaction that is on its way, or was until lately.
    InputsTaken,
    /// The account's limits are in the way.
    NotGranted(NotGranted),
}

/// Why a spend is not granted. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGranted {
    /// The session, or the agent's grant, ended meanwhile.
    #[error("signed out, or removed by the owner, meanwhile: nothing was paid")]
    Over,
    /// Over the limit per purchase.
    #[error("over the limit of {} per purchase: raise it on the account's page (PUT /me/agent-limits)", limit.display_tada())]
    PerPayment { limit: Lovelace },
    /// Over the daily limit.
    #[error(
        "over the daily limit: {} of {} are spent today (UTC); raise it on the account's page (PUT /me/agent-limits) or try again tomorrow",
        spent.display_tada(), limit.display_tada()
    )]
    Daily {
        limit: Lovelace,
        /// Spent today.
        spent: Lovelace,
    },
}

impl NotGranted {
    /// Why so much more is not granted within these limits, per purchase and per day, where so much is spent today.
    pub(crate) fn of(amount: Lovelace, (limit, daily): (Lovelace, Lovelace), spent: Lovelace) -> Option<Self> {
        if amount > limit {
            return Some(Self::PerPayment { limit });
        }
        spent.checked_add(amount).is_none_or(|total| total > daily).then_some(Self::Daily { limit: daily, spent })
    }
}

/// SQL for what an account has spent on a day, over its expressions for both: what took no effect is given back.
pub(crate) fn spent_on(owner: &str, day: &str) -> String {
    format!(
        "coalesce((SELECT sum(p.amount_lovelace) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id \
         WHERE p.owner = {owner} AND p.day = {day} AND o.state IN ('claimed', 'submitted', 'included')), 0)"
    )
}

/// Payments of one payer from outside that took no effect, and were over less than [`LATELY_SLOTS`] ago, beyond which no
/// other is taken.
pub(crate) const MAX_REFUSED: u32 = 20;
/// The same however long ago: each leaves a row for a day.
const MAX_REFUSED_ROWS: u32 = 100;
/// How long after its end a payment that took no effect for all that is known may be in a block all the same, in slots: no
/// provider is believed to be further behind. What is over for longer is in nobody's way.
const LATELY_SLOTS: u64 = MAX_LAG_MS / 1_000;

/// SQL for whether a payer from outside has as many, over `?1` and the facts. They are counted by the key that signs: a lock
/// may name any stake credential beside it.
macro_rules! too_many_refused {
    ($facts:literal) => {
        concat!(
            "(SELECT total(o.valid_until_slot > ",
            $facts,
            " ->> '$.lately') >= ",
            $facts,
            " ->> '$.refused' OR count(*) >= ",
            $facts,
            " ->> '$.refusedRows' FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.payer_key = ",
            $facts,
            " ->> '$.key' AND p.owner IS NULL AND p.bought = 0 AND p.tx_id <> ?1 AND (o.state IN ('refused', 'expired') \
               OR o.state <> 'included' AND o.valid_until_slot < ",
            $facts,
            " ->> '$.slot'))"
        )
    };
}

/// Protected sales that wait for their results beyond which no other is taken. A watcher has 12 ticks of 40 calls at least
/// when a lock is in a block. Where nobody comes before it, a tick posts a dozen results; where each buyer's own step comes
/// into a block before the result of its sale, and takes the others of that transaction along, it posts some two or three,
/// or fewer where strangers keep it busy: of 20 the last is posted then with four minutes to spare, of 28 one was late
/// (`accepted.rs` of this crate's tests). Without a result in time the content would be given away.
const MAX_UNPOSTED: u32 = 20;

/// Where half as many wait, a network that has as many of them gets no other taken: some are left for everybody else.
const MAX_UNPOSTED_OF_ONE: u32 = MAX_UNPOSTED / 4;

/// For how many slots after its end a lock waits for its result of which nobody knows whether a block has it: each is asked
/// for by itself, and whoever handed it in may have left before a block had it.
const UNSEEN_SLOTS: u64 = 20 * 60;

/// SQL for whether so many wait that one more would be too many, over `?1` and the facts. What a node had before us keeps nobody
/// out: it did not count while it was refused, and its result comes after those of what did.
macro_rules! crowded {
    ($facts:literal) => {
        concat!(
            "(SELECT count(*) >= ",
            $facts,
            " ->> '$.unposted' OR (2 * count(*) >= ",
            $facts,
            " ->> '$.unposted' AND total(network IN (",
            $facts,
            " ->> '$.network', ",
            $facts,
            " ->> '$.networkBefore')) >= ",
            $facts,
            " ->> '$.ofOne') FROM (SELECT network FROM escrows LEFT JOIN payments p ON p.tx_id = purchase_id \
             LEFT JOIN outbox o ON o.tx_id = purchase_id WHERE o.was_public IS NOT 1 \
             AND utxo IS NOT NULL AND result_hash IS NULL AND submit_result_ms > max(",
            $facts,
            " ->> '$.now', coalesce((SELECT tip_time_ms FROM chain_state), 0)) \
             UNION ALL SELECT p.network FROM outbox o JOIN payments p ON p.tx_id = o.tx_id WHERE o.kind = 'payment' \
             AND o.state IN ('claimed', 'submitted') AND p.mode = 'protected' AND p.tx_id <> ?1 \
             AND o.valid_until_slot > coalesce((SELECT tip_slot FROM chain_state), 0) - ",
            $facts,
            " ->> '$.unseenSlots'))"
        )
    };
}

/// SQL for the addresses of a buyer: these, and the service wallets of the accounts that they sign in to.
macro_rules! buyers {
    ($addresses:literal) => {
        concat!(
            "(SELECT value FROM json_each(",
            $addresses,
            ") UNION SELECT wallet_address FROM accounts WHERE owner IN (SELECT value FROM json_each(",
            $addresses,
            ")))"
        )
    };
}
pub(crate) use buyers;

/// SQL for how many payments of these buyers for a listing took no effect for all that is known, and may be in a block
/// ([`lost`]), over `?1` and the facts.
macro_rules! lost {
    ($facts:literal, $buyers:literal) => {
        concat!(
            "(SELECT count(*) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.listing_id = ",
            $facts,
            " ->> '$.listing' AND p.payer IN ",
            buyers!($buyers),
            " AND p.tx_id <> ?1 AND (o.state = 'refused' AND (o.was_public OR o.wallet IS NOT NULL) OR o.state = 'expired') \
               AND o.absent = 0)"
        )
    };
}

/// SQL for the payments of a service wallet for a listing that took no effect lately, for all that is known, over the facts.
macro_rules! ended {
    ($facts:literal) => {
        concat!(
            "FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE p.payer = ",
            $facts,
            " ->> '$.buyers[0]' AND p.listing_id = ",
            $facts,
            " ->> '$.listing' AND outbox.wallet IS NOT NULL AND outbox.state IN ('refused', 'expired') \
             AND outbox.created_at_ms > ",
            $facts,
            " ->> '$.since'"
        )
    };
}

/// SQL for whether more of these are known than a payment was kept apart from, over the facts.
macro_rules! more_ended {
    ($facts:literal) => {
        concat!(
            "(",
            $facts,
            " ->> '$.ended' IS NOT NULL AND (SELECT count(*) ",
            ended!($facts),
            ") > ",
            $facts,
            " ->> '$.ended')"
        )
    };
}

/// SQL for another transaction under the same terms, over `?1` and the facts. Who reads terms off a lock that waits for a
/// block may lock under them too: what of theirs took no effect stands in nobody's way but theirs.
macro_rules! same_terms {
    ($facts:literal) => {
        concat!(
            "SELECT p.tx_id FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.terms_digest = ",
            $facts,
            " ->> '$.terms' AND p.tx_id <> ?1 AND (p.payer_key = ",
            $facts,
            " ->> '$.key' OR o.state IN ('claimed', 'submitted', 'included'))"
        )
    };
}

/// SQL for whether what lets somebody use an account is over, over the facts.
macro_rules! over {
    ($facts:literal) => {
        concat!(
            "(",
            $facts,
            " ->> '$.session' IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions WHERE token_hash = ",
            $facts,
            " ->> '$.session' AND expires_at_ms > ",
            $facts,
            " ->> '$.now') OR ",
            $facts,
            " ->> '$.grant' IS NOT NULL AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE id = ",
            $facts,
            " ->> '$.grant' AND revoked_at_ms IS NULL))"
        )
    };
}

/// When a payment may be claimed. `?1` is its transaction.
const GUARD: &str = concat!(
    "(?10 ->> '$.content' IS NULL OR EXISTS (SELECT 1 FROM contents WHERE hash = ?10 ->> '$.content')) \
    AND NOT EXISTS (",
    same_terms!("?10"),
    ") AND NOT EXISTS (SELECT 1 FROM purchases WHERE listing_id = ?10 ->> '$.listing' AND status <> 'refunded' \
      AND buyer_address IN ",
    buyers!("?10, '$.buyers'"),
    ") AND NOT EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.listing_id = ?10 ->> '$.listing' \
      AND p.payer IN ",
    buyers!("?10, '$.buyers'"),
    " AND p.tx_id <> ?1 AND o.state IN ('claimed', 'submitted')) \
    AND NOT EXISTS (SELECT 1 FROM payment_identifiers WHERE listing_id = ?10 ->> '$.listing' \
      AND identifier = ?10 ->> '$.identifier' AND payload_digest <> ?10 ->> '$.payload') \
    AND (?10 ->> '$.owner' IS NULL OR EXISTS (SELECT 1 FROM accounts a WHERE a.owner = ?10 ->> '$.owner' \
      AND a.max_per_payment >= CAST(?10 ->> '$.amount' AS INTEGER) \
      AND a.daily_budget >= CAST(?10 ->> '$.amount' AS INTEGER) + \
        coalesce((SELECT sum(p.amount_lovelace) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id \
          WHERE p.owner = a.owner AND p.day = ?10 ->> '$.day' AND o.state IN ('claimed', 'submitted', 'included')), 0))) \
    AND (?10 ->> '$.refused' IS NULL OR NOT (",
    too_many_refused!("?10"),
    ")) AND (?10 ->> '$.unposted' IS NULL OR NOT (",
    crowded!("?10"),
    ")) AND ",
    lost!("?10", "?10, '$.buyers'"),
    " <= (?10 ->> '$.looked') AND NOT ",
    more_ended!("?10"),
    " AND NOT ",
    over!("?10")
);

/// What stands in a claim's way, as it is read beside it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InTheWay {
    terms: Option<TxHash>,
    owned: Option<TxHash>,
    paying: Option<TxHash>,
    identifier: Option<ContentHash>,
    refused: u8,
    crowded: u8,
    lost: u8,
    ended: u8,
    over: u8,
    max_per_payment: Option<Lovelace>,
    daily_budget: Option<Lovelace>,
    spent: Lovelace,
}

impl NewPayment<'_> {
    fn purpose(&self) -> String {
        format!("payment:{}:{}", self.listing_id, self.tx)
    }

    fn network(&self, now: Millis) -> Option<ContentHash> {
        self.network.filter(|network| *network != network::UNKNOWN).map(|network| network::kept(network, now))
    }

    /// Under which addresses the same buyer may have bought before.
    fn buyers(&self) -> Vec<String> {
        let owner = self.account.map(|account| account.owner.clone());
        std::iter::once(self.payer.to_string()).chain(owner).collect()
    }

    fn facts(&self, now: Millis) -> serde_json::Value {
        json!({
            "listing": self.listing_id,
            "buyers": self.buyers(),
            "key": self.payer.payment_key(),
            "terms": self.terms_digest,
            "identifier": self.identifier.as_ref().map(|identifier| &identifier.id),
            "payload": self.identifier.as_ref().map(|identifier| identifier.payload),
            "owner": self.account.map(|account| &account.owner),
            "day": day(now),
            "now": now,
            "refused": self.account.is_none().then_some(MAX_REFUSED),
            "refusedRows": MAX_REFUSED_ROWS,
            "lately": lately(now),
            "slot": SlotConfig::PREPROD.slot_at(now).unwrap_or(0),
            "unposted": (self.mode == DeliveryMode::Protected).then_some(MAX_UNPOSTED),
            "ofOne": MAX_UNPOSTED_OF_ONE,
            "unseenSlots": UNSEEN_SLOTS,
            "network": self.network(now),
            "networkBefore": self.network(now.saturating_sub(DAY_MS)),
            "amount": self.amount,
            "content": self.content,
            "looked": self.looked,
            "ended": self.ended,
            "since": now.saturating_sub(MAX_LATE_MS),
            "session": self.leave().and_then(Leave::session),
            "grant": self.leave().and_then(Leave::grant),
        })
    }

    fn leave(&self) -> Option<&Leave> {
        self.account?.leave.as_ref()
    }

    /// By which agent it is made, right behind the statement that keeps it.
    fn attribute(&self) -> Statement {
        statement!(
            "INSERT INTO agent_spends (tx_id, grant_id) SELECT ?1, id FROM oauth_grants WHERE id = ?2 AND changes() > 0 \
             ON CONFLICT (tx_id) DO UPDATE SET grant_id = excluded.grant_id",
            self.tx,
            self.leave().and_then(Leave::grant),
        )
    }

    /// Claims it, in one batch: with what it pays for, its inputs and its share of the limits, or not at all. What another
    /// statement, right behind the one that claims, answers comes with it.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn claim(
        &self,
        database: &impl Database,
        beside: Option<Statement>,
        now: Millis,
    ) -> Result<(Claim, Option<Rows>), DatabaseError> {
        let facts = self.facts(now);
        let [entry, reserve] = write_down(
            &Draft {
                tx: self.tx,
                kind: Kind::Payment,
                purpose: self.purpose(),
                wallet: self.account.map(|account| account.wallet_address),
                cbor: self.cbor.to_vec(),
                valid_until: self.valid_until,
                newest_height: self.newest_height,
                spends: self.inputs.to_vec(),
                collateral: vec![],
                guard: Some(Guard { sql: GUARD, facts: facts.clone() }),
            },
            now,
        );
        let mut statements = vec![
            entry,
            self.insert(now),
            self.attribute(),
            reserve,
            self.forget_names(),
            self.identify(&self.tx, now),
            record(&self.tx),
            in_the_way(&self.tx, &facts),
        ];
        let is_beside = beside.is_some();
        statements.splice(1..1, beside);
        let mut answers = database.batch(statements).await?;
        let beside = (is_beside && answers.len() > 1).then(|| answers.remove(1));
        let [entry, _, _, _, _, _, known, in_the_way] = exactly(answers)?;
        if let Some(entry) = Entry::first(&entry)? {
            return Ok((Claim::New(entry), beside));
        }
        let in_the_way: InTheWay = in_the_way.first_json()?.ok_or_else(|| DatabaseError("nothing was read".into()))?;
        let known: Option<PaymentRecord> = known.first_json()?;
        Ok((self.why(known, &in_the_way), beside))
    }

    fn why(&self, known: Option<PaymentRecord>, found: &InTheWay) -> Claim {
        let refused = |record: &PaymentRecord| record.entry.state == outbox::EntryState::Refused;
        if let Some(known) = known.filter(|known| !refused(known)) {
            return Claim::Known(Box::new(known));
        }
        if self.identifier.as_ref().is_some_and(|own| found.identifier.is_some_and(|known| known != own.payload)) {
            return Claim::IdentifierTaken;
        }
        if let Some(purchase) = found.owned {
            return Claim::Owned(purchase);
        }
        if let Some(tx) = found.paying {
            return Claim::Paying(tx);
        }
        if found.lost > 0 {
            return Claim::MaybePaid;
        }
        if found.ended > 0 {
            return Claim::Ended;
        }
        if found.terms.is_some() {
            return Claim::TermsTaken;
        }
        if found.crowded > 0 {
            return Claim::Crowded;
        }
        if found.refused != 0 {
            return Claim::TooManyRefused;
        }
        if found.over != 0 {
            return Claim::NotGranted(NotGranted::Over);
        }
        let limits = found.max_per_payment.zip(found.daily_budget);
        let why = limits.and_then(|limits| NotGranted::of(self.amount, limits, found.spent));
        why.map_or(Claim::InputsTaken, Claim::NotGranted)
    }

    /// What the entry pays for, if the entry was written now, by the statement just before: what another request claimed
    /// stays that one's, whatever header comes after it.
    fn insert(&self, now: Millis) -> Statement {
        statement!(
            "INSERT INTO payments (tx_id, listing_id, mode, payer, amount_lovelace, creator_lovelace, header_digest, \
               terms_digest, owner, day, payer_key, network) \
             SELECT tx_id, ?3, ?4, ?5, CAST(?6 AS INTEGER), CAST(?7 AS INTEGER), ?8, ?9, ?10, ?11, ?12, ?13 FROM outbox \
             WHERE tx_id = ?1 AND purpose = ?2 AND state = 'claimed' AND changes() > 0 ON CONFLICT (tx_id) DO UPDATE SET listing_id = excluded.listing_id, mode = excluded.mode, \
               payer = excluded.payer, amount_lovelace = excluded.amount_lovelace, \
               creator_lovelace = excluded.creator_lovelace, header_digest = excluded.header_digest, \
               terms_digest = excluded.terms_digest, owner = excluded.owner, day = excluded.day, \
               payer_key = excluded.payer_key, network = excluded.network",
            self.tx,
            self.purpose(),
            self.listing_id,
            self.mode.as_str(),
            self.payer,
            self.amount,
            self.creator,
            self.header,
            self.terms_digest,
            self.account.map(|account| account.owner.as_str()),
            self.account.map(|_| day(now)),
            self.payer.payment_key().to_string(),
            self.network(now),
        )
    }

    /// Keeps the client's name for another payment, by which its payer owns the listing or is paying for it: the same payload
    /// is answered by that one from now on. For whoever is known to have made this one, and nobody else.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn name(&self, database: &impl Database, answer: &TxHash, now: Millis) -> Result<(), DatabaseError> {
        if self.identifier.is_some() {
            database.run(self.identify(answer, now)).await?;
        }
        Ok(())
    }

    /// The names of what a node refused once, where this header claims it anew: they were another's, who may be a thief.
    fn forget_names(&self) -> Statement {
        statement!(
            "DELETE FROM payment_identifiers WHERE tx_id = ?1 AND payload_digest IS NOT ?2 \
             AND EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id \
               WHERE p.tx_id = ?1 AND p.header_digest = ?3 AND o.state = 'claimed')",
            self.tx,
            self.identifier.as_ref().map(|identifier| identifier.payload),
            self.header,
        )
    }

    /// The identifier, unless another payload has it, with the transaction that answers it. It opens what was paid for, so
    /// none is kept for what another header claimed, nor for what nobody claimed; and but a few for each transaction: who owns
    /// a listing sends new names for nothing.
    fn identify(&self, answer: &TxHash, now: Millis) -> Statement {
        statement!(
            format!(
                "INSERT INTO payment_identifiers (listing_id, identifier, payload_digest, tx_id, created_at_ms) \
                 SELECT ?2, ?3, ?4, ?5, ?6 WHERE ?3 IS NOT NULL AND EXISTS (SELECT 1 FROM payments WHERE tx_id = ?5) \
                   AND NOT EXISTS (SELECT 1 FROM payments WHERE tx_id = ?1 AND header_digest <> ?7) \
                   AND NOT EXISTS (SELECT 1 FROM payment_identifiers WHERE tx_id = ?5 LIMIT 1 OFFSET {LAST_NAME}) \
                 ON CONFLICT DO NOTHING"
            ),
            self.tx,
            self.listing_id,
            self.identifier.as_ref().map(|identifier| identifier.id.as_str()),
            self.identifier.as_ref().map(|identifier| identifier.payload),
            answer,
            now,
            self.header,
        )
    }
}

/// The last of the names that are kept for one transaction, counted from 0.
const LAST_NAME: u32 = 7;

/// SQL for the purchase by which a buyer owns a listing, over `?2`.
const OWNED: &str = concat!(
    "(SELECT id FROM purchases WHERE listing_id = ?2 ->> '$.listing' AND status <> 'refunded' AND buyer_address IN ",
    buyers!("?2, '$.buyers'"),
    " ORDER BY bought_at_ms LIMIT 1)"
);
/// SQL for another transaction by which a buyer is paying for a listing, over `?1` and `?2`.
const PAYING: &str = concat!(
    "(SELECT p.tx_id FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.listing_id = ?2 ->> '$.listing' \
       AND p.payer IN ",
    buyers!("?2, '$.buyers'"),
    " AND p.tx_id <> ?1 AND o.state IN ('claimed', 'submitted') LIMIT 1)"
);

const RECORD: &str = concat!(
    "'listingId', p.listing_id, 'mode', p.mode, 'payer', p.payer, 'header', p.header_digest, \
     'delivered', json(iif(p.delivered_at_ms IS NULL, 'false', 'true')), \
     'status', (SELECT status FROM purchases WHERE id = p.tx_id), \
     'resultsFirst', json(iif((SELECT results_first FROM chain_reading), 'true', 'false')), \
     'resultFailed', json(iif((SELECT failures FROM escrows WHERE purchase_id = p.tx_id) > 0, 'true', 'false')), 'awaits', ",
    awaits!("p.tx_id", "p.mode")
);

/// SQL that reads [`PaymentRecord`]s; conditions and order follow, over `p` (payments) and `outbox`.
fn records() -> String {
    format!(
        "SELECT json_object('entry', {ENTRY_JSON}, {RECORD}) FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE "
    )
}

/// How many payments that took no effect, for all that is known, are looked for at each request of whoever made them.
pub(crate) const LOOKED_FOR: u32 = 8;
/// SQL for their order: the oldest and the newest come first. Who tries again spends what the first try spent, so that this
/// is the one which a provider that refused it may have passed on; and the newest a provider that is behind does not show yet.
const ENDS_FIRST: &str =
    "min(row_number() OVER (ORDER BY created_at_ms), row_number() OVER (ORDER BY created_at_ms DESC))";

/// The statement that reads the payment by a transaction, as [`PaymentRecord`].
#[must_use]
pub fn record(tx: &TxHash) -> Statement {
    statement!(records() + "p.tx_id = ?1", tx)
}

/// The statement that reads the payments for a listing by these buyers whose end is not known, oldest first, as
/// [`PaymentRecord`]s.
#[must_use]
pub fn open(listing: &str, buyers: &[String]) -> Statement {
    statement!(
        records()
            + concat!("p.listing_id = ?1 AND p.payer IN ", buyers!("?2"))
            + " AND outbox.state IN ('claimed', 'submitted') ORDER BY created_at_ms LIMIT 3",
        listing,
        json!(buyers).to_string()
    )
}

/// The statement that reads the entries of payments in this mode whose end is not known: of each network in its turn, those
/// that expire first, for anyone can hand in many that no block has.
#[must_use]
pub(crate) fn open_in(mode: DeliveryMode, most: u32) -> Statement {
    statement!(
        format!(
            "SELECT {ENTRY_JSON} FROM outbox JOIN (SELECT o.tx_id AS which, o.valid_until_slot AS until, \
               row_number() OVER (PARTITION BY p.network ORDER BY o.valid_until_slot) AS turn \
               FROM outbox o CROSS JOIN payments p ON p.tx_id = o.tx_id WHERE o.kind = 'payment' \
               AND o.state IN ('claimed', 'submitted') AND p.mode = ?1 ORDER BY turn, until LIMIT {most}) \
             ON tx_id = which ORDER BY turn, until"
        ),
        mode.as_str()
    )
}

/// The statement that reads the payments for a listing by these buyers that may be in a block by now, those that are
/// open first, as [`PaymentRecord`]s. A ledger's refusal proves little: somebody else may have handed the payment in.
#[must_use]
pub fn maybe_included(listing: &str, buyers: &[String]) -> Statement {
    statement!(
        format!(
            "{} p.listing_id = ?1 AND p.payer IN {} AND outbox.state <> 'included' AND outbox.absent = 0 \
               ORDER BY outbox.state IN ('claimed', 'submitted') DESC, {ENDS_FIRST} LIMIT {LOOKED_FOR}",
            records(),
            buyers!("?2")
        ),
        listing,
        json!(buyers).to_string()
    )
}

/// The statement that reads the oldest and the newest payments of this payer for a listing that took no effect for all that is
/// known, and may be in a block: the provider was behind when their time was over, or somebody else handed them in before us,
/// so that a node refused them. As [`PaymentRecord`]s.
#[must_use]
pub fn lost(listing: &str, payer: &str) -> Statement {
    statement!(
        format!(
            "{} p.listing_id = ?1 AND p.payer = ?2 AND (outbox.state = 'refused' AND outbox.was_public \
               OR outbox.state = 'expired') AND outbox.absent = 0 ORDER BY {ENDS_FIRST} LIMIT {LOOKED_FOR}",
            records()
        ),
        listing,
        payer
    )
}

/// The first slot that was not over [`LATELY_SLOTS`] ago.
pub(crate) fn lately(now: Millis) -> u64 {
    SlotConfig::PREPROD.slot_at(now).unwrap_or(0).saturating_sub(LATELY_SLOTS)
}

/// The same of a payer, or of the service wallet of the account that they sign in to, of which a refusal proves as little.
#[must_use]
pub fn lost_of_buyer(listing: &str, payer: &str) -> Statement {
    statement!(
        format!(
            "{} p.listing_id = ?1 AND p.payer IN {} AND (outbox.state = 'refused' AND (outbox.was_public \
               OR outbox.wallet IS NOT NULL) OR outbox.state = 'expired') AND outbox.absent = 0 ORDER BY {ENDS_FIRST} LIMIT {LOOKED_FOR}",
            records(),
            buyers!("?2")
        ),
        listing,
        json!([payer]).to_string()
    )
}

/// The statement that counts all of these, of any of these buyers.
#[must_use]
pub fn count_lost(listing: &str, buyers: &[String]) -> Statement {
    let facts = json!({ "listing": listing, "buyers": buyers });
    statement!(concat!("SELECT CAST(", lost!("?2", "?2, '$.buyers'"), " AS TEXT) WHERE ?1 = ''"), "", facts.to_string())
}

/// The statement that counts those of a payer, or of the service wallet of the account that they sign in to, that were over less
/// than [`LATELY_SLOTS`] ago.
#[must_use]
pub fn count_lost_lately(listing: &str, payer: &str, now: Millis) -> Statement {
    statement!(
        format!(
            "SELECT CAST(count(*) AS TEXT) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.listing_id = ?1 \
             AND p.payer IN {} AND (o.state = 'refused' AND (o.was_public OR o.wallet IS NOT NULL) OR o.state = 'expired') \
             AND o.valid_until_slot > ?3",
            buyers!("?2")
        ),
        listing,
        json!([payer]).to_string(),
        lately(now)
    )
}

/// The statement that reads the payments of a service wallet for a listing that took no effect lately, for all that is known
/// ([`outbox::Earlier`]), oldest first.
#[must_use]
pub fn ended_lately(wallet: &Address, listing: &str, now: Millis) -> Statement {
    let facts = json!({ "buyers": [wallet], "listing": listing, "since": now.saturating_sub(MAX_LATE_MS) });
    statement!(
        format!("SELECT {ENTRY_JSON} {} ORDER BY created_at_ms LIMIT {MAX_ENDED} + 1", ended!("?1")),
        facts.to_string()
    )
}

/// The statement that reads the payments of a service wallet for a listing that took no effect, for all that was known, longer
/// ago: nothing keeps them out any more, and a provider that erred then shows where they are by now. Of an hour there are
/// [`MAX_ENDED`] at most, and who buys again looks for them, a few in each round, before more are made. As [`PaymentRecord`]s.
#[must_use]
pub fn ended_before(wallet: &Address, listing: &str, now: Millis) -> Statement {
    statement!(
        format!(
            "{} p.payer = ?1 AND p.listing_id = ?2 AND outbox.wallet IS NOT NULL AND outbox.state IN ('refused', 'expired') \
               AND outbox.created_at_ms <= ?3 AND outbox.absent = 0 ORDER BY {ENDS_FIRST} LIMIT {LOOKED_FOR}",
            records()
        ),
        wallet,
        listing,
        now.saturating_sub(MAX_LATE_MS)
    )
}

/// The statement that reads what a payload came with under this identifier before: `{payload, tx}`.
#[must_use]
pub fn identified(listing: &str, identifier: Option<&str>) -> Statement {
    statement!(
        "SELECT json_object('payload', payload_digest, 'tx', tx_id) FROM payment_identifiers \
         WHERE listing_id = ?1 AND identifier = ?2",
        listing,
        identifier
    )
}

/// An answer to [`identified`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Identified {
    /// The payload's digest.
    pub payload: ContentHash,
    /// The transaction in it.
    pub tx: TxHash,
}

/// The statement that notes that content was handed out for a payment: from now on the payment alone opens nothing.
#[must_use]
pub fn mark_delivered(tx: &TxHash, now: Millis) -> Statement {
    statement!("UPDATE payments SET delivered_at_ms = ?2 WHERE tx_id = ?1 AND delivered_at_ms IS NULL", tx, now)
}

fn in_the_way(tx: &TxHash, facts: &serde_json::Value) -> Statement {
    statement!(
        format!(
            "SELECT json_object( \
               'terms', ({} LIMIT 1), \
               'owned', {OWNED}, 'paying', {PAYING}, \
               'identifier', (SELECT payload_digest FROM payment_identifiers WHERE listing_id = ?2 ->> '$.listing' \
                 AND identifier = ?2 ->> '$.identifier'), \
               'refused', iif(?2 ->> '$.refused' IS NULL, 0, {}), \
               'crowded', iif(?2 ->> '$.unposted' IS NULL, 0, {}), \
               'lost', {} > (?2 ->> '$.looked'), 'ended', {}, 'over', {}, \
               'maxPerPayment', (SELECT CAST(max_per_payment AS TEXT) FROM accounts WHERE owner = ?2 ->> '$.owner'), \
               'dailyBudget', (SELECT CAST(daily_budget AS TEXT) FROM accounts WHERE owner = ?2 ->> '$.owner'), \
               'spent', CAST({} AS TEXT))",
            same_terms!("?2"),
            too_many_refused!("?2"),
            crowded!("?2"),
            lost!("?2", "?2, '$.buyers'"),
            more_ended!("?2"),
            over!("?2"),
            spent_on("?2 ->> '$.owner'", "?2 ->> '$.day'")
        ),
        tx,
        facts.to_string()
    )
}

/// All rows as [`PaymentRecord`]s.
///
/// # Errors
/// What is stored is not what we store.
pub fn all(rows: &Rows) -> Result<Vec<PaymentRecord>, DatabaseError> {
    rows.all_json()
}
