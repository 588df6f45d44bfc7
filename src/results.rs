//! Whoever posts results, over the service binding: the watcher, which also does so by itself every minute.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use cardano::TxHash;
use futures_util::future::{Either, select};
use market::checkout::Results;
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use worker::{
    Env,
    js_sys::{Object, Promise, Reflect},
    wasm_bindgen_futures::JsFuture,
};

use crate::app::App;

/// How long a request waits for it. What it does goes on without whoever asked.
const TIME: Duration = Duration::from_secs(10);

// Cloudflare's service bindings: https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/http/. All of
// `worker`'s client for this one call would be ten kilobytes of the program.
#[wasm_bindgen]
extern "C" {
    /// A service binding.
    type Service;
    #[wasm_bindgen(method, catch)]
    fn fetch(this: &Service, url: &str, init: &Object) -> Result<Promise, JsValue>;

    /// Its `Response`.
    type Answer;
    #[wasm_bindgen(method, getter)]
    fn ok(this: &Answer) -> bool;
}

impl Results for App {
    fn post<'a>(&'a self, lock: &'a TxHash) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(async move {
            self.line().note("results", &lock.to_string());
            let Ok(asked) = asked(self.env()) else { return false };
            let (answer, end) = (pin!(JsFuture::from(asked)), pin!(edge::sleep(TIME)));
            matches!(select(answer, end).await, Either::Left((Ok(answer), _)) if answer.unchecked_ref::<Answer>().ok())
        })
    }
}

fn asked(env: &Env) -> Result<Promise, JsValue> {
    let watcher = Reflect::get(env, &"WATCHER".into())?;
    let init = Object::new();
    Reflect::set(&init, &"method".into(), &"POST".into())?;
    watcher.unchecked_ref::<Service>().fetch("https://watcher/results", &init)
}
