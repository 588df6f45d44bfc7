//! Whoever posts results, over the service binding: the watcher, which also does so by itself every minute.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use cardano::TxHash;
use futures_util::future::{Either, select};
use market::checkout::Results;
use worker::{Env, Method, Request, RequestInit};

use crate::app::App;

/// How long a request waits for it. What it does goes on without whoever asked.
const TIME: Duration = Duration::from_secs(15);

impl Results for App {
    fn post<'a>(&'a self, lock: &'a TxHash) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(async move {
            self.line().note("results", &lock.to_string());
            let asked = ask(self.env()).await;
            if let Err(error) = &asked {
                self.line().note("results_failed", &error.to_string());
            }
            asked.is_ok()
        })
    }
}

async fn ask(env: &Env) -> worker::Result<()> {
    let mut init = RequestInit::new();
    init.with_method(Method::Post);
    let request = Request::new_with_init("https://watcher/results", &init)?;
    let watcher = env.service("WATCHER")?;
    match select(pin!(watcher.fetch_request(request)), pin!(edge::sleep(TIME))).await {
        Either::Left((answer, _)) if answer.as_ref().is_ok_and(|answer| answer.status_code() == 200) => Ok(()),
        Either::Left((answer, _)) => Err(format!("answered {}", answer?.status_code()).into()),
        Either::Right(_) => Err("no answer in time".into()),
    }
}
