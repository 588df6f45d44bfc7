//! A minimal HTTP server for one resource: one request at a time, each on its own connection.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

/// Maximum size of a request's head in bytes: twice that of a `PAYMENT-SIGNATURE` header.
const MAX_HEAD: u64 = 96 * 1024;
/// Maximum time to wait for the client while a request is read or answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// An HTTP response.
pub struct Answer {
    pub status: u16,
    /// Headers of this response, in addition to those that every response has.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Answer {
    /// Creates the response to a request that fails because the chain cannot be read.
    pub fn unavailable(why: &str) -> Self {
        Self { status: 503, headers: vec![("Retry-After", "5".into())], body: why.into() }
    }
}

/// Listens on a port, prints its address, and answers every request with the result of `answer`, which gets the
/// `PAYMENT-SIGNATURE` header.
pub fn serve(
    port: u16,
    mut handle: impl FnMut(Option<&str>) -> Result<Answer, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("http://{}", listener.local_addr()?);
    for stream in listener.incoming() {
        // A client's error ends its connection, not the server.
        if let Err(error) = stream.map_err(Into::into).and_then(|stream| answer(&stream, &mut handle)) {
            eprintln!("{error}");
        }
    }
    Ok(())
}

fn answer(
    mut stream: &TcpStream,
    handle: &mut impl FnMut(Option<&str>) -> Result<Answer, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut signature = None;
    for line in BufReader::new(stream.take(MAX_HEAD)).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("payment-signature")
        {
            signature = Some(value.trim().to_owned());
        }
    }
    let answer = handle(signature.as_deref())?;
    write!(stream, "HTTP/1.1 {} .\r\nConnection: close\r\nCache-Control: no-store\r\n", answer.status)?;
    write!(stream, "Content-Type: text/plain\r\nContent-Length: {}\r\n", answer.body.len())?;
    for (name, value) in &answer.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    Ok(write!(stream, "\r\n{}", answer.body)?)
}
