//! The owner's answer on the consent page: `GET /oauth/challenge` and `POST /oauth/approve`.
//!
//! ```text
//!   wallet   signs a challenge that was issued for this consent request (`market::challenge`)
//!   demo     no signature; the shared demo wallet's limits are fixed
//! ```
//!
//! A single batch creates the account (with its service wallet on the first sign-in), sets its limits and inserts the
//! grant. All of it requires that no grant has the consent request's id yet, so only the first answer counts. The batch
//! also counts against a daily quota per network, because anyone can make up a wallet for an answer and a grant is
//! stored for long.

use std::fmt;

use api_types::{ApprovalMode, ConnectChallenge, Connected};
use cardano::{
    Address, ContentHash, Lovelace,
    address::AddressError,
    cip8::{Cip8Error, DataSignature, SignedMessage},
    keys::VerifyEd25519,
};
use market::{
    account::{
        DEFAULT_DAILY_BUDGET, DEFAULT_MAX_PER_PAYMENT, DEMO_OWNER, MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA,
        NewWallet, RuleChanges,
    },
    challenge::{self, Challenge, Challenges, ChallengesError, Purpose},
    limits::{DAY_MS, day},
    network,
};
use sql::{Database, DatabaseError, Param, Read, Write};

use super::{
    GrantId, Scope, Server, TokenKind,
    authorize::{ConsentRequest, RequestExpired},
    client::client_auth,
    token::Claims,
};

/// Lifetime of an authorization code in ms. RFC 6749, section 4.1.2, suggests at most ten minutes.
pub const CODE_MS: u64 = 2 * 60 * 1_000;
/// Age in ms at which a grant whose code was never redeemed is deleted, long after its consent request has expired.
const UNREDEEMED_MS: u64 = 24 * 60 * 60 * 1_000;
/// Maximum number of unredeemed grants that one approval deletes, so that no approval has to delete many thousands at
/// once. Each approval creates only one grant, so a backlog still shrinks.
const MAX_CLEARED: u32 = 1_000;
/// Maximum number of approvals from one client network on one day (UTC). Each approval causes up to 14 kB to be stored
/// for 100 days: a grant and the client's registration.
pub const MAX_APPROVED_A_DAY: u32 = 1_000;
/// Maximum number of approvals per day by one owner after the network's quota is used up. Only owners of an account
/// with a purchase get this extra quota.
pub const MAX_APPROVALS_PER_BUYER: u32 = 20;
/// Maximum size in bytes of the request body with an owner's answer.
pub const MAX_APPROVAL_BYTES: usize = 32 * 1_024;

/// Reason why no challenge was issued, or why an owner's answer is not accepted. The messages are shown on the consent
/// page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// 400: the consent request has expired.
    #[error(transparent)]
    Expired(#[from] RequestExpired),
    /// 400: the address is invalid.
    #[error("{0}")]
    Address(#[from] AddressError),
    /// 400: a field of the answer is invalid.
    #[error("{0}")]
    Invalid(String),
    /// 401: the wallet's signature is invalid.
    #[error("the wallet's signature is not valid: {0}")]
    Signature(#[from] Cip8Error),
    /// 401: the challenge has expired or was already used.
    #[error("the challenge expired or was used: connect the wallet again")]
    NoChallenge,
    /// 503: too many agents were connected from the client's network today.
    #[error(
        "{MAX_APPROVED_A_DAY} agents were connected from your network today, the most for one network: connect this one after 00:00 UTC, or from another network"
    )]
    NoMoreToday {
        /// Number of seconds until the next day begins in UTC.
        retry_after_s: u64,
    },
    /// 503: the database is unavailable. The cause is only logged.
    #[error("the service cannot answer just now: try again in some seconds")]
    Database(#[from] DatabaseError),
    /// 503: the challenge store is unavailable. The cause is only logged.
    #[error("sign-in is not available now: try again in some seconds")]
    Challenges(#[from] ChallengesError),
}

/// The party that approved a consent request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approver {
    /// The owner of a wallet, who signed the challenge with this address.
    Wallet(Address),
    /// No particular owner: the agent spends from the shared demo wallet.
    Demo,
}

impl Approver {
    /// Returns the key under which the approver's account is stored.
    #[must_use]
    pub fn owner(&self) -> String {
        match self {
            Self::Wallet(address) => address.to_string(),
            Self::Demo => DEMO_OWNER.to_owned(),
        }
    }
}

/// A valid answer to a consent request. Only the first answer to a request is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub request: ConsentRequest,
    pub approver: Approver,
    /// Permissions that the owner grants to the agent, at most those requested.
    pub scope: Scope,
    /// Maximum amount per purchase.
    pub max_per_payment: Lovelace,
    /// Maximum amount per UTC day.
    pub daily_budget: Lovelace,
    /// Changes to the owner's rules for the account's agents.
    pub rules: RuleChanges,
    /// `true` if the owner left the form's limits unchanged. An existing account then keeps its own limits.
    pub keeps_limits: bool,
}

impl<D: Database, W, J> Server<'_, D, W, J> {
    /// Issues a challenge for the wallet with this address, in bech32 or in hexadecimal as wallets return it.
    ///
    /// # Errors
    /// [`ApprovalError`] if the request has expired, if the address is not a preprod address, or if the challenge could
    /// not be stored.
    pub async fn challenge(
        &self,
        challenges: &impl Challenges,
        sealed: &str,
        address: &str,
        random: [u8; 32],
    ) -> Result<ConnectChallenge, ApprovalError> {
        let request = ConsentRequest::open(sealed, self.authority, self.now_ms)?;
        let (owner, purpose) = (Address::parse_cip30(address)?, Purpose::Connect(request.id));
        let Challenge { owner, digest, nonce, .. } =
            challenge::give(challenges, purpose, owner, random, self.now_ms).await?;
        Ok(ConnectChallenge { owner, digest, nonce })
    }

    /// Checks an owner's answer to a consent request. `has_demo` tells whether a demo wallet is configured.
    ///
    /// # Errors
    /// Returns the reason why the answer is not accepted.
    pub async fn check(
        &self,
        challenges: &impl Challenges,
        port: &impl VerifyEd25519,
        has_demo: bool,
        answer: &api_types::Approval,
    ) -> Result<Approval, ApprovalError> {
        let invalid = |text: &dyn fmt::Display| ApprovalError::Invalid(text.to_string());
        let request = ConsentRequest::open(&answer.request, self.authority, self.now_ms)?;
        let (per_payment, daily) = (answer.max_per_payment_ada, answer.daily_budget_ada);
        for (name, ada, max) in
            [("maxPerPaymentAda", per_payment, MAX_PER_PAYMENT_ADA), ("dailyBudgetAda", daily, MAX_DAILY_BUDGET_ADA)]
        {
            if !(1..=max).contains(&ada) {
                return Err(invalid(&format_args!("{name}: must be a whole number from 1 to {max}")));
            }
        }
        let rules = RuleChanges::parse(answer.ask_above_ada, answer.protected_only, answer.min_reputation);
        let rules = rules.map_err(|error| invalid(&error))?;
        // The maximum is the narrower scope, because scopes are ordered from the widest to the narrowest.
        let scope = answer.scope.unwrap_or(request.scope).max(request.scope);
        match answer.mode {
            ApprovalMode::Demo if !has_demo => Err(invalid(&"mode: there is no demo wallet here; connect a wallet")),
            // All clients share the demo wallet, so no form changes its limits.
            ApprovalMode::Demo => Ok(Approval {
                request,
                approver: Approver::Demo,
                scope,
                max_per_payment: DEFAULT_MAX_PER_PAYMENT,
                daily_budget: DEFAULT_DAILY_BUDGET,
                rules: RuleChanges::default(),
                keeps_limits: true,
            }),
            ApprovalMode::Wallet => Ok(Approval {
                approver: Approver::Wallet(signer(answer, &request, challenges, port, self.now_ms).await?),
                request,
                scope,
                // The daily budget also limits a single purchase.
                max_per_payment: Lovelace::from_ada(per_payment.min(daily)),
                daily_budget: Lovelace::from_ada(daily),
                rules,
                keeps_limits: answer.keep_limits.unwrap_or_default(),
            }),
        }
    }

    /// Stores the grant, and creates the account if its owner signs in for the first time. `wallet` is the service
    /// wallet for a new account. The approval counts against the daily quota of `network`.
    ///
    /// # Errors
    /// [`ApprovalError::Expired`] if the request was already approved; [`ApprovalError::NoMoreToday`] if the quota is
    /// used up; [`ApprovalError::Database`] if the database is unavailable.
    pub async fn grant(
        &self,
        approval: &Approval,
        wallet: &NewWallet,
        network: &str,
        random: [u8; 16],
    ) -> Result<Connected, ApprovalError> {
        let id = GrantId::new(random);
        let owner = approval.approver.owner();
        let [network, own] = [network, &owner].map(|whose| network::daily_digest(whose, self.now_ms));
        let writing = Writing { approval, owner, network, own, now_ms: self.now_ms };
        let of_request: Read<Option<String>> =
            sql::read!("SELECT id FROM oauth_grants WHERE request = ?1", approval.request.id.as_str());
        let address: Read<Option<Address>> =
            sql::read!("SELECT wallet_address FROM accounts WHERE owner = ?1", writing.owner.as_str());
        let writes = (clear(self.now_ms), writing.count(), writing.account(wallet), writing.grant(&id));
        let ((_, _, _, granted), known, address) = self.db.batch((writes, of_request, address)).await?;
        if granted.is_none() {
            let retry_after_s = DAY_MS.saturating_sub(self.now_ms % DAY_MS).div_ceil(1_000);
            let full = known.is_none();
            return Err(if full { ApprovalError::NoMoreToday { retry_after_s } } else { RequestExpired.into() });
        }
        let agent_address = address.ok_or_else(|| DatabaseError("no account for a grant".into()))?;
        let claims = Claims { grant: id, generation: 0, expires_at_ms: self.now_ms.saturating_add(CODE_MS) };
        let code = claims.token(TokenKind::Code, self.authority);
        let redirect = approval.request.granted(self.authority, &code);
        Ok(Connected { redirect, agent_address, owner: writing.owner })
    }
}

async fn signer(
    answer: &api_types::Approval,
    request: &ConsentRequest,
    challenges: &impl Challenges,
    port: &impl VerifyEd25519,
    now_ms: u64,
) -> Result<Address, ApprovalError> {
    let (Some(owner), Some(key), Some(signature)) = (&answer.owner, &answer.key, &answer.signature) else {
        return Err(ApprovalError::Invalid("owner, key and signature are required in mode wallet".into()));
    };
    let owner = Address::parse_cip30(owner)?;
    let signed = DataSignature::from_hex(key, signature)?;
    let message = SignedMessage::parse(&signed.key, &signed.signature)?;
    let purpose = Purpose::Connect(request.id.clone());
    let challenge = challenge::find(challenges, &purpose, &owner, message.payload(), now_ms).await?;
    let challenge = challenge.ok_or(ApprovalError::NoChallenge)?;
    let unverified = message.check(&owner, challenge.digest.as_bytes())?;
    unverified.verify(port).await.map_err(Cip8Error::from)?;
    Ok(owner)
}

/// Builds the statement that deletes grants whose codes were never redeemed.
fn clear(now_ms: u64) -> Write {
    sql::write!(
        "DELETE FROM oauth_grants WHERE id IN (SELECT id FROM oauth_grants WHERE generation = 0 \
           AND created_at_ms < ?1 ORDER BY created_at_ms LIMIT {MAX_CLEARED})",
        now_ms.saturating_sub(UNREDEEMED_MS)
    )
}

/// SQL condition that holds if this batch has counted the approval against the quota of its network or its owner.
const COUNTED: &str = "EXISTS (SELECT 1 FROM granted_days WHERE day = ?1 AND network IN (?2, ?4) AND request = ?3)";
/// SQL condition that holds if the consent request was already approved.
const GRANTED: &str = "EXISTS (SELECT 1 FROM oauth_grants WHERE request = ?3)";

/// Values for the statements that store an approval in one batch.
struct Writing<'a> {
    approval: &'a Approval,
    owner: String,
    network: ContentHash,
    /// Key under which an approval is counted against the owner's own quota, in place of a network.
    own: ContentHash,
    now_ms: u64,
}

impl Writing<'_> {
    /// Returns the parameters of a statement. `?1` to `?4` are the day, the network, the consent request, and the key
    /// of the owner's quota; `params` begin at `?5`.
    fn params<const N: usize>(&self, params: [Param; N]) -> Vec<Param> {
        let request = self.approval.request.id.as_str();
        let mut all = vec![Param::from(day(self.now_ms)), self.network.into(), request.into(), self.own.into()];
        all.extend(params);
        all
    }

    /// Builds the statement that counts the approval against the network's daily quota. If that quota is used up, the
    /// statement counts the approval against the owner's own quota, provided that the owner's account has a purchase.
    fn count(&self) -> Write {
        let sql = format!(
            "INSERT INTO granted_days (day, network, grants, request) SELECT ?1, whose, 1, ?3 \
             FROM (SELECT ?2 AS whose, {MAX_APPROVED_A_DAY} AS most \
               UNION ALL SELECT ?4, {MAX_APPROVALS_PER_BUYER} WHERE EXISTS (SELECT 1 FROM payments p JOIN purchases ON id = p.tx_id WHERE p.owner = ?5)) \
             WHERE NOT {GRANTED} AND coalesce((SELECT grants FROM granted_days WHERE day = ?1 AND network = whose), 0) < most \
             LIMIT 1 ON CONFLICT (day, network) DO UPDATE SET grants = grants + 1, request = excluded.request"
        );
        Write::new(sql, self.params([self.owner.as_str().into()]))
    }

    /// Builds the statement that creates the account, or sets the limits of an existing account.
    fn account(&self, wallet: &NewWallet) -> Write {
        let Approval { max_per_payment, daily_budget, rules, keeps_limits, .. } = *self.approval;
        let owner_key = match &self.approval.approver {
            Approver::Wallet(owner) => Some(owner.payment_key()),
            Approver::Demo => None,
        };
        let sql = format!(
            "INSERT INTO accounts (owner, wallet_address, key_version, max_per_payment, daily_budget, created_at_ms, \
               owner_key, wallet_key, ask_above, protected_only, min_reputation) \
             SELECT ?5, ?6, ?7, CAST(?8 AS INTEGER), CAST(?9 AS INTEGER), ?10, ?11, ?12, CAST(?13 AS INTEGER), coalesce(?16, 0), \
               coalesce(?17, 0) WHERE {COUNTED} AND NOT {GRANTED} \
             ON CONFLICT (owner) DO UPDATE SET ask_above = iif(?15, excluded.ask_above, ask_above), \
               protected_only = coalesce(?16, protected_only), min_reputation = coalesce(?17, min_reputation), \
               max_per_payment = iif(?14, max_per_payment, excluded.max_per_payment), \
               daily_budget = iif(?14, daily_budget, excluded.daily_budget)"
        );
        let params = [
            self.owner.as_str().into(),
            wallet.address.into(),
            wallet.key_version.into(),
            max_per_payment.into(),
            daily_budget.into(),
            self.now_ms.into(),
            owner_key.into(),
            wallet.address.payment_key().into(),
            rules.ask_above.flatten().into(),
            keeps_limits.into(),
            rules.ask_above.is_some().into(),
            rules.protected_only.into(),
            rules.min_reputation.map(u32::from).into(),
        ];
        Write::new(sql, self.params(params))
    }

    fn grant(&self, id: &GrantId) -> Write<Option<String>> {
        let request = &self.approval.request;
        let sql = format!(
            "INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, scope, code_challenge, client_auth, \
               rotated_at_ms, created_at_ms, used_at_ms) \
             SELECT ?5, ?3, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?14, ?13, ?13, ?13 WHERE {COUNTED} \
             ON CONFLICT (request) DO NOTHING RETURNING id"
        );
        let params = [
            id.to_string().into(),
            self.owner.as_str().into(),
            request.client_id.as_str().into(),
            request.client_name.as_str().into(),
            request.redirect_uri.as_str().into(),
            request.resource.as_str().into(),
            self.approval.scope.as_str().into(),
            request.code_challenge.as_str().into(),
            self.now_ms.into(),
            client_auth(request.has_keys).into(),
        ];
        Write::new(sql, self.params(params))
    }
}
