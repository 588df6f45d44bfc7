//! `POST /verify` and `POST /settle`: verifies and settles payments for other servers.

use api_types::{Error, ErrorCode};
use edge::{
    answer::{self, ErrorAnswer, Fault},
    bearer::Bearer,
    chain::Blockfrost,
    d1::D1,
    ed25519::WebCrypto,
    http,
    semaphore::Permit,
    serve::Response,
    timer::Timer,
};
use facilitator::{Facilitator, KeyHash, Spent, spend};
use market::PortError;
use serde::Serialize;
use x402_cardano::facilitator::FacilitatorRequest;
#[cfg(test)]
use x402_cardano::facilitator::VerifyResponse;

#[cfg(test)]
use crate::openapi::operations::{Document, Operation};

use crate::{
    app::App,
    error::{ApiError, no_such_path},
    limits::{self, Counted},
    route::{Argument, Asked, Body, Limit, Route, route},
    settings::FacilitatorAccess,
};

/// Times to wait in ms before each poll for a block: about 40 s in total, in which preprod makes two blocks.
const SCHEDULE: [u64; 5] = [2_000, 6_000, 8_000, 10_000, 14_000];

const DAY_S: u32 = 24 * 60 * 60;

pub const ROUTES: &[Route] = &[
    route! {
        POST "/verify", Limit::Client(Counted::FACILITATOR) => verify(ForeignPayment);
        docs |of| described(of.names("verifyPayment", "x402", "Verify a payment to another server"))
            .answers::<VerifyResponse>(200, "Whether the payment may be settled.")
    },
    route! {
        POST "/settle", Limit::Client(Counted::FACILITATOR) => settle(ForeignPayment);
        docs |of| described(of.names("settlePayment", "x402", "Settle a payment to another server"))
            .answers::<Document>(200, "x402's settlement response. After `settlement_pending`, send the same request again.")
    },
];

#[cfg(test)]
fn described(operation: Operation<'_>) -> Operation<'_> {
    operation
        .more("Body and answer are those of x402's specification (7.1 and 7.2). The operator chooses who may ask (setting FACILITATOR): nobody, so that the path does not exist; everybody; or servers that send a key as a bearer token.")
        .fails(&[400, 401, 404])
}

/// Body of a request to the facilitator.
struct ForeignPayment {
    request: FacilitatorRequest,
    _held: Option<Permit>,
}

impl Argument for ForeignPayment {
    const BODY: Option<Body> = Some(Body::of(64 << 10));

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        if asked.app.settings()?.facilitator == FacilitatorAccess::Off {
            return Err(no_such_path().into());
        }
        let (bytes, held) = http::hold_request(&asked.app.request, Self::BODY.map_or(0, |body| body.max)).await?;
        let request = FacilitatorRequest::from_json(&bytes).map_err(|error| {
            ErrorAnswer::bad_request(Error {
                field: Some("body".into()),
                ..Error::new(ErrorCode::MalformedBody, error)
            })
        })?;
        Ok(Self { request, _held: held })
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<Document>("application/json")
    }
}

/// Verifies a payment without storing anything.
async fn verify(app: &App, payment: ForeignPayment) -> Result<Response, ApiError> {
    run(app, async |facilitator| facilitator.verify(&payment.request).await).await
}

async fn settle(app: &App, payment: ForeignPayment) -> Result<Response, ApiError> {
    run(app, async |facilitator| facilitator.settle(&payment.request).await).await
}

async fn run<T: Serialize, E: Into<PortError>>(
    app: &App,
    answer: impl AsyncFnOnce(&Facilitator<'_, D1, Blockfrost, WebCrypto, Timer>) -> Result<T, E>,
) -> Result<Response, ApiError> {
    let caller = caller(app).await?;
    let methods = app.methods()?;
    let (default, escrow) = methods.facilitator();
    let facilitator = Facilitator {
        database: &app.database(),
        chain: &app.chain_for(&caller)?,
        signatures: &WebCrypto,
        sleep: &app.timer(),
        network: api_types::NETWORK,
        default,
        escrow,
        schedule: &SCHEDULE,
        now: app.now_ms,
    };
    let told = answer(&facilitator).await.map_err(Into::into)?;
    Ok(answer::private_json(serde_json::to_string(&told).map_err(Fault::inconsistent("an answer"))?))
}

/// Counts the request against the caller's key, if keys are required. Returns the name under which the caller's
/// provider calls are queued.
async fn caller(app: &App) -> Result<String, ApiError> {
    if app.settings()?.facilitator != FacilitatorAccess::Keys {
        return Ok(limits::client(&app.request)?);
    }
    let unknown = || {
        let text = "this facilitator needs a key: ask its operator for one, and send it as a bearer token";
        ErrorAnswer::unauthorized(Error::new(ErrorCode::NotSignedIn, text)).with_header("www-authenticate", "Bearer")
    };
    let Bearer::Token(token) = Bearer::of(&app.request)? else { return Err(unknown().into()) };
    match spend(&app.database(), &KeyHash::of(&token), app.now_ms).await? {
        Spent::Counted(name) => Ok(format!("key {name}")),
        Spent::Unknown => Err(unknown().into()),
        Spent::UsedUp(calls) => {
            let text = format!("this key's {calls} calls of today (UTC) are used up: try again tomorrow");
            let passed = u32::try_from((app.now_ms / 1_000).rem_euclid(u64::from(DAY_S))).unwrap_or(0);
            Err(ErrorAnswer::too_many(DAY_S.saturating_sub(passed), Error::new(ErrorCode::RateLimited, text)).into())
        }
    }
}
