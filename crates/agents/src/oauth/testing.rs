//! Test fixture: the real schema on SQLite, a wallet, documents of clients, and a clock that tests advance.

use api_types::{ConnectChallenge, Connected, Tokens};
use std::{cell::RefCell, collections::HashMap};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::{
    Address,
    cip8::{DataSignature, sign},
    keys::{Native, SigningKey},
};
use futures_lite::future::block_on;
use market::{
    account::NewWallet,
    challenge::{Challenges, ChallengesError},
};
use ring::{rand::SystemRandom, signature as rs};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sql::sqlite::Sqlite;
use url::{Url, form_urlencoded::Serializer};

use super::{
    Authority, OAuthError, Secrets, Server,
    approve::{Approval, ApprovalError},
    assertion::{PublicJwk, VerifyJws},
    authorize::{AuthorizeRefusal, ConsentRequest},
    client::ClientMetadata,
    document::{DocumentUrl, Documents, FetchError, Fetched},
    exchange::TokenRequest,
    grant::Caller,
};

pub(super) const BASE: &str = "https://surety.example.com";
pub(super) const NOW: u64 = 1_790_000_000_000;
pub(super) const CALLBACK: &str = "http://127.0.0.1/callback";
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// PKCE challenge from RFC 7636, appendix B.
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A fake web with the documents that strangers publish.
#[derive(Default)]
pub(super) struct Web {
    pub pages: RefCell<HashMap<String, Fetched>>,
    pub asked: RefCell<Vec<String>>,
}

impl Web {
    pub fn publish(&self, url: &str, body: &Value) {
        let body = body.to_string().into_bytes();
        let page = Fetched { status: 200, content_type: "application/json".into(), max_age_s: None, body };
        self.pages.borrow_mut().insert(url.into(), page);
    }
}

impl Documents for Web {
    async fn get(&self, url: &DocumentUrl) -> Result<Fetched, FetchError> {
        self.asked.borrow_mut().push(url.as_str().to_owned());
        self.pages.borrow().get(url.as_str()).cloned().ok_or_else(|| FetchError("no route".into()))
    }
}

/// A challenge store in memory.
#[derive(Default)]
pub(super) struct Kept(pub RefCell<HashMap<String, String>>);

impl Challenges for Kept {
    async fn put(&self, key: &str, text: &str, _: u64) -> Result<(), ChallengesError> {
        self.0.borrow_mut().insert(key.to_owned(), text.to_owned());
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<String>, ChallengesError> {
        Ok(self.0.borrow().get(key).cloned())
    }
}

/// A verifier of signatures that behaves like WebCrypto.
pub(super) struct Ring;

impl VerifyJws for Ring {
    async fn verify(&self, key: &PublicJwk, message: &[u8], signature: &[u8]) -> bool {
        match key {
            PublicJwk::Rsa { n, e } => {
                let key = rs::RsaPublicKeyComponents { n, e };
                key.verify(&rs::RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            PublicJwk::P256 { x, y } => {
                let point = [&[4], &x[..], &y[..]].concat();
                rs::UnparsedPublicKey::new(&rs::ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
        }
    }
}

pub(super) enum ClientKey {
    Es256(rs::EcdsaKeyPair),
    Rs256(rs::RsaKeyPair),
}

impl ClientKey {
    pub fn es256() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = rs::EcdsaKeyPair::generate_pkcs8(&rs::ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = rs::EcdsaKeyPair::from_pkcs8(&rs::ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Self::Es256(pair.unwrap())
    }

    pub fn rs256() -> Self {
        Self::Rs256(rs::RsaKeyPair::from_pkcs8(include_bytes!("testdata/rsa-for-tests.pk8")).unwrap())
    }

    pub fn jwk(&self, kid: &str) -> Value {
        let b64 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Es256(pair) => {
                let point = rs::KeyPair::public_key(pair).as_ref();
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": b64(&point[1..33]), "y": b64(&point[33..]) })
            }
            Self::Rs256(pair) => {
                let components = rs::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": kid, "n": b64(&components.n), "e": b64(&components.e) })
            }
        }
    }

    pub fn jwt(&self, header: &Value, claims: &Value) -> String {
        let part = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::Es256(pair) => pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&rs::RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    pub const fn alg(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Rs256(_) => "RS256",
        }
    }
}

/// An authorization server with its database, documents, challenges and clock.
pub(super) struct World {
    pub db: Sqlite,
    pub authority: Authority,
    pub web: Web,
    pub challenges: Kept,
    pub now: RefCell<u64>,
    randomness: RefCell<u128>,
}

impl World {
    pub fn new() -> Self {
        Self {
            db: Sqlite::of(market::schema::MIGRATIONS).unwrap(),
            authority: authority(BASE, 7),
            web: Web::default(),
            challenges: Kept::default(),
            now: RefCell::new(NOW),
            randomness: RefCell::new(1),
        }
    }

    pub fn now(&self) -> u64 {
        *self.now.borrow()
    }

    pub fn server(&self) -> Server<'_, Sqlite, Web, Ring> {
        self.server_of(&self.authority)
    }

    /// Returns another server, with another issuer or secret, on the same database.
    pub fn server_of<'a>(&'a self, authority: &'a Authority) -> Server<'a, Sqlite, Web, Ring> {
        Server { authority, db: &self.db, documents: &self.web, jws: &Ring, now_ms: self.now() }
    }

    pub fn wait(&self, ms: u64) {
        *self.now.borrow_mut() += ms;
    }

    pub fn random(&self) -> [u8; 16] {
        *self.randomness.borrow_mut() += 1;
        Sha256::digest(self.randomness.borrow().to_be_bytes())[..16].try_into().unwrap()
    }

    /// Registers a public client and returns its id.
    pub fn register(&self, redirect_uris: &[&str]) -> String {
        let body = json!({ "client_name": "Shopper", "redirect_uris": redirect_uris });
        self.register_body(&body).unwrap()["client_id"].as_str().unwrap().to_owned()
    }

    pub fn register_body(&self, body: &Value) -> Result<Value, OAuthError> {
        let metadata = ClientMetadata::from_registration(body.to_string().as_bytes())?;
        let answer = block_on(self.server().register(&metadata, "203.0.113.7"))?;
        Ok(serde_json::from_str(&answer).unwrap())
    }

    pub fn authorize(&self, query: &str) -> Result<ConsentRequest, AuthorizeRefusal> {
        block_on(self.server().consent_request(query, self.random()))
    }

    /// Creates a valid consent request of this client.
    pub fn consent(&self, client: &str) -> ConsentRequest {
        self.authorize(&query(&authorization(client))).unwrap()
    }

    pub fn check(&self, body: &Value) -> Result<Approval, ApprovalError> {
        let answer = serde_json::from_value(body.clone()).map_err(|error| ApprovalError::Invalid(error.to_string()))?;
        block_on(self.server().check(&self.challenges, &Native, true, &answer))
    }

    pub fn grant(&self, approval: &Approval) -> Result<Connected, ApprovalError> {
        self.grant_from("203.0.113.7", approval)
    }

    /// Stores an approval that came from this network.
    pub fn grant_from(&self, network: &str, approval: &Approval) -> Result<Connected, ApprovalError> {
        let key = SigningKey::from_seed(&Sha256::digest(approval.approver.owner()).into()).unwrap();
        let wallet = NewWallet { address: key.enterprise_address(), key_version: 1 };
        block_on(self.server().grant(approval, &wallet, network, self.random()))
    }

    /// Signs in with this client and returns the authorization code.
    pub fn code(&self, client: &str) -> String {
        let request = self.consent(client);
        let approved = self.grant(&self.check(&self.approval(&request)).unwrap()).unwrap();
        parameter(&approved.redirect, "code").unwrap()
    }

    /// Returns the body that the consent page sends for the owner's wallet.
    pub fn approval(&self, request: &ConsentRequest) -> Value {
        let (address, signed) = self.signed(request, 1);
        json!({
            "request": request.seal(&self.authority), "mode": "wallet", "owner": address.to_string(),
            "key": hex::encode(&signed.key), "signature": hex::encode(&signed.signature), "maxPerPaymentAda": 10, "dailyBudgetAda": 30,
        })
    }

    /// Requests a challenge for an address, as the consent page does.
    pub fn challenge(&self, sealed: &str, address: &str) -> Result<ConnectChallenge, ApprovalError> {
        let random = Sha256::digest(self.random()).into();
        block_on(self.server().challenge(&self.challenges, sealed, address, random))
    }

    /// Signs the challenge of a consent request with the wallet of this seed.
    pub fn signed(&self, request: &ConsentRequest, seed: u8) -> (Address, DataSignature) {
        let (key, address) = wallet(seed);
        let sealed = request.seal(&self.authority);
        let challenge = self.challenge(&sealed, &address.to_string()).unwrap();
        (address, sign(&key, &address, challenge.digest.as_bytes()).unwrap())
    }

    pub fn token(&self, form: &[(&str, &str)]) -> Result<Tokens, OAuthError> {
        self.token_at(&self.authority, form)
    }

    pub fn token_at(&self, authority: &Authority, form: &[(&str, &str)]) -> Result<Tokens, OAuthError> {
        let request = TokenRequest::parse(&query(form), None, authority)?;
        block_on(self.server_of(authority).exchange(&request, "203.0.113.7"))
    }

    pub fn redeem(&self, client: &str, code: &str) -> Result<Tokens, OAuthError> {
        self.token(&redemption(client, code))
    }

    pub fn refresh(&self, client: &str, token: &str) -> Result<Tokens, OAuthError> {
        self.token(&[("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)])
    }

    pub fn sign_in(&self) -> (String, Tokens) {
        let client = self.register(&[CALLBACK]);
        let tokens = self.redeem(&client, &self.code(&client)).unwrap();
        (client, tokens)
    }

    pub fn caller(&self, access_token: &str) -> Option<Caller> {
        block_on(self.server().caller(access_token)).unwrap()
    }
}

pub(super) fn authority(base: &str, secret: u8) -> Authority {
    Authority::new(base, Secrets::new(&[secret; 32]).unwrap()).unwrap()
}

pub(super) fn wallet(seed: u8) -> (SigningKey, Address) {
    let key = SigningKey::from_seed(&[seed; 32]).unwrap();
    let address = key.enterprise_address();
    (key, address)
}

pub(super) fn authorization(client: &str) -> Vec<(&str, &str)> {
    vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("state", "af0ifjsldkj"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("resource", "https://surety.example.com/mcp"),
        ("scope", "mcp"),
    ]
}

pub(super) fn redemption<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("client_id", client),
        ("code_verifier", VERIFIER),
        ("resource", "https://surety.example.com/mcp"),
    ]
}

/// Changes, adds or (with an empty value) removes one parameter of a form.
pub(super) fn with<'a>(parameters: &[(&'a str, &'a str)], name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut changed: Vec<_> = parameters.iter().copied().filter(|(known, _)| *known != name).collect();
    if !value.is_empty() {
        changed.push((name, value));
    }
    changed
}

pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(parameters).finish()
}

pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    Url::parse(url).unwrap().query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
