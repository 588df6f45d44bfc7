//! Changes to a listing by its seller. Content, seller and modes never change, because buyers paid for them.

use api_types::{ContentStats, Error, ErrorCode, Listing};
use cardano::Lovelace;

use super::{
    MAX_DESCRIPTION, MAX_TITLE, SHORT, category, check_excerpt, check_price,
    draft::{ListingDraft, required},
    excerpt, is_forbidden_in_description, preview, price, private, text,
};

/// Valid changes to a listing. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    title: Option<String>,
    description: Option<String>,
    price: Option<Lovelace>,
    /// `Some(None)` removes the preview.
    preview_media: Option<Option<String>>,
    /// `Some(None)` removes the category.
    category: Option<Option<&'static str>>,
    /// `Some(None)` removes the excerpt.
    excerpt: Option<Option<String>>,
}

impl Changes {
    /// Parses the body of a request. An empty text removes the preview, the category or the excerpt.
    ///
    /// # Errors
    /// Returns an error for the first field that breaks a rule or cannot be changed.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let draft = ListingDraft::read(body)?;
        let fixed = [("content", draft.content), ("modes", draft.modes), ("sellerAddress", draft.seller_address)];
        if let Some((field, _)) = fixed.iter().find(|(_, sent)| sent.is_some()) {
            let rule = "never changes: list it anew, and take this listing off sale";
            return Err(Error::of_field(ErrorCode::InvalidValue, field, rule));
        }
        let is_empty = |sent: Option<&serde_json::value::RawValue>| sent.is_some_and(|json| json.get() == "\"\"");
        let changes = Self {
            title: draft.title.map(|sent| text(Some(sent), "title", MAX_TITLE, |c| c.is_control())).transpose()?,
            description: draft
                .description
                .map(|sent| text(Some(sent), "description", MAX_DESCRIPTION, is_forbidden_in_description))
                .transpose()?,
            price: draft
                .price_lovelace
                .map(|sent| price(&required(Some(sent), "priceLovelace", SHORT, "is not an amount of lovelace")?))
                .transpose()?,
            preview_media: match draft.preview_media {
                sent if is_empty(sent) => Some(None),
                sent => preview(sent)?.map(Some),
            },
            category: match draft.category {
                sent if is_empty(sent) => Some(None),
                sent => category(sent)?.map(Some),
            },
            excerpt: draft.excerpt.map(|sent| excerpt(Some(sent))).transpose()?,
        };
        if changes == Self::default() {
            let rule = "must name what to change: title, description, priceLovelace, category, previewMedia or excerpt";
            return Err(Error::of_field(ErrorCode::MissingField, "body", rule));
        }
        Ok(changes)
    }

    /// Returns whether the changes include a public text, which must be compared with the content.
    pub(crate) const fn need_content(&self) -> bool {
        self.title.is_some() || self.description.is_some() || matches!(self.excerpt, Some(Some(_)))
    }

    /// Returns the changed listing. `content` is the listing's content, which is needed only if a public text changes.
    ///
    /// # Errors
    /// Returns an error if a changed field and an unchanged one together break a rule.
    pub(crate) fn apply(&self, listing: &Listing, content: Option<&str>) -> Result<Listing, Error> {
        let Self { title, description, price, preview_media, category, excerpt } = self.clone();
        let (excerpt, content_stats) = match excerpt {
            None => (listing.excerpt.clone(), listing.content_stats),
            Some(excerpt) => {
                let stats = content.filter(|_| excerpt.is_some()).map(ContentStats::of);
                (excerpt, stats)
            }
        };
        let changed = Listing {
            title: title.unwrap_or_else(|| listing.title.clone()),
            description: description.unwrap_or_else(|| listing.description.clone()),
            price_lovelace: price.unwrap_or(listing.price_lovelace),
            preview_media: preview_media.unwrap_or_else(|| listing.preview_media.clone()),
            category: category.map_or_else(|| listing.category.clone(), |category| category.map(str::to_owned)),
            excerpt,
            content_stats,
            seller_name: None,
            sales: None,
            seller_reputation: None,
            ..listing.clone()
        };
        check_price(changed.price_lovelace, &changed.modes)?;
        if let Some(content) = content {
            if let Some(Some(excerpt)) = &self.excerpt {
                check_excerpt(content, excerpt)?;
            }
            private(content, &changed.title, &changed.description, changed.excerpt.as_deref())?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_change_keeps_its_rule_and_the_rest_cannot_be_changed() {
        for (body, code, field) in [
            (json!({}), ErrorCode::MissingField, "body"),
            (json!({ "unknown": 1 }), ErrorCode::MissingField, "body"),
            (json!([]), ErrorCode::MalformedBody, "body"),
            (json!({ "title": " " }), ErrorCode::NothingVisible, "title"),
            (json!({ "description": "x".repeat(2_001) }), ErrorCode::InvalidLength, "description"),
            (json!({ "priceLovelace": 5 }), ErrorCode::WrongType, "priceLovelace"),
            (json!({ "category": "Nonsense" }), ErrorCode::InvalidValue, "category"),
            (json!({ "previewMedia": "http://a.example/a.mp4" }), ErrorCode::InvalidValue, "previewMedia"),
            (json!({ "content": "other" }), ErrorCode::InvalidValue, "content"),
            (json!({ "modes": ["instant"], "title": "A" }), ErrorCode::InvalidValue, "modes"),
        ] {
            let error = Changes::read(body.to_string().as_bytes()).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (code, Some(field)), "{body}");
        }
        let read = |body: serde_json::Value| Changes::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(read(json!({ "category": "", "title": null })).category, Some(None));
        assert_eq!(read(json!({ "previewMedia": "" })).preview_media, Some(None));
        assert_eq!(read(json!({ "category": "Hero" })).category, Some(Some("Hero")));
        assert_eq!(read(json!({ "excerpt": "" })).excerpt, Some(None));
    }

    #[test]
    fn a_new_excerpt_is_checked_against_the_content_and_removed_with_the_numbers_beside_it() {
        let content = format!("Three gradients drift. {}", "Rules for each of them. ".repeat(40));
        let offer = json!({
            "title": "Aurora", "description": "A hero", "priceLovelace": "2000000", "modes": ["instant"], "content": content,
            "sellerAddress": "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz",
        });
        let offer = crate::listing::NewListing::read(offer.to_string().as_bytes(), None).unwrap();
        let card = offer.card(&crate::ListingId::new(1, [0; 10]), 1);
        let listing: Listing = serde_json::from_str(&card).unwrap();
        let apply = |listing: &Listing, excerpt: &str| {
            let changes = Changes::read(json!({ "excerpt": excerpt }).to_string().as_bytes()).unwrap();
            changes.apply(listing, changes.need_content().then_some(content.as_str()))
        };
        let with = apply(&listing, "gradients drift.").unwrap();
        assert_eq!(
            (with.excerpt.as_deref(), with.content_stats),
            (Some("gradients drift."), Some(ContentStats::of(&content)))
        );
        assert_eq!(apply(&listing, "gradients fly.").unwrap_err().code, ErrorCode::InvalidValue);
        assert_eq!(apply(&listing, &content[..500]).unwrap_err().code, ErrorCode::RevealsContent);
        // Changes of other fields keep both.
        let renamed = Changes::read(br#"{"title":"Northern lights"}"#).unwrap().apply(&with, Some(&content)).unwrap();
        assert_eq!((&renamed.excerpt, renamed.content_stats), (&with.excerpt, with.content_stats));
        assert_eq!(apply(&with, "").unwrap(), listing);
    }
}
