//! Whether a request comes from a browser or from a program (RFC 9110, 12.5.1).

/// Whether `Accept` names `text/html`, and likes nothing that a program reads better. Programs that take anything, and say
/// so or nothing, get JSON.
#[must_use]
pub fn prefers_html(accept: Option<&str>) -> bool {
    let quality = |kind: &str| {
        let ranges = accept.unwrap_or_default().split(',');
        ranges.filter_map(|range| quality_of(range, kind)).max().unwrap_or(0)
    };
    let html = quality("text/html");
    html > 0 && html >= quality("application/json") && html >= quality("text/plain")
}

/// The quality, in thousandths, that a media range gives to a type that it names; `None` where it names another.
fn quality_of(range: &str, kind: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    match weight {
        None => Some(1_000),
        Some(weight) => Some(thousandths(weight).unwrap_or(0)),
    }
}

/// `0.8` is 800; `None` for what is no weight.
fn thousandths(weight: &str) -> Option<u32> {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 3 || !digits(fraction) {
        return None;
    }
    match whole {
        "1" => fraction.bytes().all(|byte| byte == b'0').then_some(1_000),
        "0" => format!("{fraction:0<3}").parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages_and_programs_get_json() {
        for (accept, html) in [
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"), true),
            (Some("text/html"), true),
            (Some("TEXT/HTML; q=0.5"), true),
            (Some("application/json;q=0.9, text/html"), true),
            (Some("application/json, text/html"), true),
            (Some("application/json, text/html;q=0.9"), false),
            (Some("text/plain, text/html;q=0.9"), false),
            (Some("text/html;q=0"), false),
            (Some("text/html;q=0.0001"), false),
            (Some("text/html;q=2"), false),
            (Some("text/html;q=often"), false),
            (Some("application/json"), false),
            (Some("text/*"), false),
            (Some("*/*"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(prefers_html(accept), html, "{accept:?}");
        }
    }
}
