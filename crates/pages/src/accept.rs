//! Content negotiation between pages and JSON (RFC 9110, 12.5.1).

/// Returns whether the header `Accept` prefers `text/html` to JSON and plain text. Clients that accept anything, or
/// send no header, get JSON.
#[must_use]
pub fn prefers_html(accept: Option<&str>) -> bool {
    let quality = |kind: &str| {
        let ranges = accept.unwrap_or_default().split(',');
        ranges.filter_map(|range| quality_of(range, kind)).max().unwrap_or(0)
    };
    let html = quality("text/html");
    html > 0 && html >= quality("application/json") && html >= quality("text/plain")
}

/// Returns the quality (in thousandths) that a media range assigns to a type, or `None` if it does not match the type.
fn quality_of(range: &str, kind: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let quality = weight.map_or(Ok(1.0), str::parse::<f32>).ok().filter(|quality| (0.0..=1.0).contains(quality));
    Some((quality.unwrap_or_default() * 1_000.0) as u32)
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
