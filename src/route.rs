//! Declarations of routes, from which follow dispatch, `405`, `OPTIONS`, OpenAPI, and the tests of all routes.
//!
//! A handler is an async function whose arguments say what it needs, each a type that implements [`Argument`]: a
//! [`Session`](crate::session::Session), the path's [`ListingId`](market::ListingId), a [`Json`](crate::body::Json)
//! body. They are extracted in order, so a handler runs only if the request is authenticated, within its limits, and
//! readable.
//!
//! ```text
//! route! {
//!     POST "/me/buy", Limit::Account(Counted::BUY) => buy(Session, Json<Buy>);
//!     docs |of| of.names("buy", "Account", "Buy from the service wallet").answers::<api_types::Bought>(200, "What was bought.")
//! }
//! ```
//!
//! `docs` describes the answers for OpenAPI. `page` declares a page in addition to the endpoint, and `only page` says
//! that the endpoint itself returns a page. Security, body, path parameter, and the errors 401, 413 and 429 are derived
//! from the limit and the arguments.

use std::pin::Pin;

use edge::serve::Response;
use x402_cardano::wire::{PAYMENT_SIGNATURE, sign_in_with_x::SIGN_IN_WITH_X};

#[cfg(test)]
pub use crate::openapi::operations::Operation;
use crate::{app::App, error::ApiError, limits::Counted};

/// Request header with a signed proof.
pub const PROOF: &str = "x-service-proof";

/// A type that has a JSON schema, for the OpenAPI document that a test generates.
#[cfg(not(test))]
pub trait Schema {}
#[cfg(not(test))]
impl<T> Schema for T {}
#[cfg(test)]
pub use schemars::JsonSchema as Schema;

/// A request, from which the arguments of its route's handler are extracted.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub app: &'a App,
    /// Rate limit of the endpoint that answers the request.
    pub limit: Limit,
    /// Value of the path's parameter; empty if the path has none.
    pub parameter: &'a str,
}

/// An argument of a route's handler, extracted from the request.
pub trait Argument: Sized {
    /// The kind of rate limit that the argument needs. A route with another kind of limit does not compile.
    const NEEDS: Needs = Needs::Nothing;
    /// Limit on the request body; `None` if the argument does not read the body.
    const BODY: Option<Body> = None;

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError>;

    /// Adds to the OpenAPI operation the inputs that the argument reads, and the errors of reading them.
    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation
    }
}

/// Limit on the size of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Maximum size in bytes.
    pub max: usize,
    /// HTTP status of the answer if the body is larger.
    pub refusal: u16,
}

impl Body {
    /// Creates a limit on the size of bodies. Larger bodies are answered with status 413.
    pub const fn of(max: usize) -> Self {
        Self { max, refusal: 413 }
    }
}

/// The kind of rate limit that an argument of a handler needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// Needs [`Limit::Session`] or [`Limit::Account`].
    Session,
    /// Needs [`Limit::Agent`].
    Agent,
    /// Needs [`Limit::OnMiss`].
    CacheMiss,
}

/// Rate limit that counts the requests to a route before they are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Requests are not counted, because answering them costs no more than a 404 for an unknown path. A test lists the
    /// routes without a limit.
    Free,
    /// Every request counts against this rate limit of its client.
    Client(Counted),
    /// A request counts against this rate limit of its client if the answer is not cached. The handler passes the limit
    /// to `read_cache`.
    OnMiss(Counted),
    /// Every request counts against its client's rate limit for requests with a session, before the session is looked
    /// up.
    Session,
    /// Every request counts against two limits: its client's rate limit for requests with a session, and, once the
    /// session is known to be valid, this rate limit of the session's account.
    Account(Counted),
    /// Every request counts against two limits: this rate limit of the agent whose token it carries, and its client's
    /// rate limit for requests with a session.
    Agent(Counted),
    /// A request with a payment or a proof in its headers counts against its client's rate limit for payments or
    /// proofs. Other requests count only if the listing's terms are not cached.
    Paywall,
}

impl Limit {
    /// Returns the name of the limit's kind, for the tests of all routes.
    #[cfg(test)]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Client(_) => "client",
            Self::OnMiss(_) => "onMiss",
            Self::Session => "session",
            Self::Account(_) => "account",
            Self::Agent(_) => "agent",
            Self::Paywall => "paywall",
        }
    }

    const fn suits(self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Session => matches!(self, Self::Session | Self::Account(_)),
            Needs::Agent => matches!(self, Self::Agent(_)),
            Needs::CacheMiss => matches!(self, Self::OnMiss(_)),
        }
    }

    /// Counts a request against its client's rate limit. Limits of accounts and agents, and limits on cache misses, are
    /// applied later, when the handler's arguments are extracted from the request.
    async fn count(self, app: &App) -> Result<(), ApiError> {
        let counted = match self {
            Self::Free | Self::OnMiss(_) | Self::Agent(_) => return Ok(()),
            Self::Client(counted) => counted,
            Self::Session | Self::Account(_) => Counted::SESSION,
            // HEAD ignores both headers.
            Self::Paywall if app.request.method() == "HEAD" => return Ok(()),
            Self::Paywall if app.request.headers().has(PAYMENT_SIGNATURE)? => Counted::PAYMENT,
            Self::Paywall if app.request.headers().has(PROOF)? || app.request.headers().has(SIGN_IN_WITH_X)? => {
                Counted::PROOF
            }
            Self::Paywall => return Ok(()),
        };
        app.limit_client(counted).await
    }
}

/// Rate limit that is charged when an answer is not cached and has to be read.
#[derive(Clone, Copy)]
pub struct OnMiss(pub Counted);

impl Argument for OnMiss {
    const NEEDS: Needs = Needs::CacheMiss;

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(Self(match asked.limit {
            Limit::OnMiss(counted) => counted,
            _ => Counted::READ,
        }))
    }
}

/// Extracts the path's parameter, unchanged from the URL.
impl Argument for String {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(asked.parameter.to_owned())
    }
}

/// Future of the answer to a request.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + 'a>>;

/// The handler of a route, with its rate limit.
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub limit: Limit,
    #[cfg_attr(not(test), expect(dead_code, reason = "the arguments apply it; OpenAPI and tests name it"))]
    pub body: Option<Body>,
    handler: for<'a> fn(Asked<'a>) -> Answer<'a>,
}

impl Endpoint {
    /// Creates an endpoint. Compilation fails if an argument of the handler requires another kind of rate limit than
    /// the declared one.
    pub const fn new(
        limit: Limit,
        arguments: &[(Needs, Option<Body>)],
        handler: for<'a> fn(Asked<'a>) -> Answer<'a>,
    ) -> Self {
        let (mut body, mut rest) = (None, arguments);
        while let [(needs, read), others @ ..] = rest {
            assert!(limit.suits(*needs), "the limit does not suit the handler's arguments");
            if read.is_some() {
                assert!(body.is_none(), "a body is read once");
                body = *read;
            }
            rest = others;
        }
        Self { limit, body, handler }
    }

    /// Counts a request against the endpoint's rate limit and answers it.
    pub async fn answer(&self, app: &App, parameter: &str) -> Result<Response, ApiError> {
        self.limit.count(app).await?;
        (self.handler)(Asked { app, limit: self.limit, parameter }).await
    }
}

/// The HTML page that browsers get from a route.
#[derive(Clone, Copy)]
pub enum Page {
    None,
    /// The route has no JSON answer: every client gets its page.
    Alone,
    /// Clients that prefer HTML get this page, and all others get the endpoint's answer.
    Beside(Endpoint),
}

/// A route of the API: its method and path, the endpoint that answers, and its description.
pub struct Route {
    /// HTTP method: `GET` (which includes `HEAD`), `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// Path, in which `{name}` stands for one non-empty segment.
    pub path: &'static str,
    /// Literal prefix of the path up to its parameter, which rules out most routes without parsing.
    pub fixed: &'static str,
    pub endpoint: Endpoint,
    pub page: Page,
    #[cfg(test)]
    pub describe: for<'a> fn(Operation<'a>) -> Operation<'a>,
}

/// Declares an [`Endpoint`], given a rate limit and a handler with its arguments.
macro_rules! endpoint {
    ($limit:expr => $($handler:ident)::+ ($($argument:ty),*)) => {
        $crate::route::Endpoint::new(
            $limit,
            &[$((<$argument as $crate::route::Argument>::NEEDS, <$argument as $crate::route::Argument>::BODY)),*],
            |asked| Box::pin(async move {
                $($handler)::+(asked.app $(, <$argument as $crate::route::Argument>::of(asked).await?)*).await
            }),
        )
    };
}

/// Declares a [`Route`], given its method, path, endpoint, page and description.
macro_rules! route {
    (
        $method:ident $path:literal, $limit:expr => $($handler:ident)::+ ($($argument:ty),*);
        $(page $page_limit:expr => $($page:ident)::+ ($($page_argument:ty),*);)?
        $(only $alone:ident;)?
        docs $describe:expr
    ) => {
        $crate::route::Route {
            method: stringify!($method),
            path: $path,
            fixed: const { $crate::route::fixed($path) },
            endpoint: $crate::route::endpoint!($limit => $($handler)::+ ($($argument),*)),
            page: $crate::route::page_of!(
                $($crate::route::endpoint!($page_limit => $($page)::+ ($($page_argument),*)))? $($alone)?
            ),
            #[cfg(test)]
            describe: |operation| {
                $(let operation = <$argument as $crate::route::Argument>::describe(operation);)*
                let describe: for<'a> fn(
                    $crate::route::Operation<'a>,
                ) -> $crate::route::Operation<'a> = $describe;
                describe(operation)
            },
        }
    };
}

/// Declares the [`Page`] of a route: none, its own endpoint, or another endpoint.
macro_rules! page_of {
    () => {
        $crate::route::Page::None
    };
    (page) => {
        $crate::route::Page::Alone
    };
    ($page:expr) => {
        $crate::route::Page::Beside($page)
    };
}

pub(crate) use {endpoint, page_of, route};

/// Returns the literal prefix of a path template up to its first parameter.
pub const fn fixed(template: &str) -> &str {
    let mut rest = template.as_bytes();
    while let [first, tail @ ..] = rest
        && *first != b'{'
    {
        rest = tail;
    }
    let (fixed, _) = template.split_at(template.len().saturating_sub(rest.len()));
    fixed
}

impl Route {
    /// Returns the methods that the route answers.
    pub fn methods(&self) -> &'static [&'static str] {
        match self.method {
            "GET" => &["GET", "HEAD"],
            "POST" => &["POST"],
            "PUT" => &["PUT"],
            "PATCH" => &["PATCH"],
            _ => &["DELETE"],
        }
    }
}
