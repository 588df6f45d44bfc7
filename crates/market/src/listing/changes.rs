//! Changes to a listing by its seller. Content, seller and modes never change, because buyers paid for them.

use api_types::{Error, ErrorCode, Listing};
use cardano::Lovelace;

use super::{
    MAX_DESCRIPTION, MAX_TITLE, SHORT, category, check_price,
    draft::{ListingDraft, required},
    is_forbidden_in_description, preview, price, private, text,
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
}

impl Changes {
    /// Parses the body of a request. An empty text removes the preview or the category.
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
        };
        if changes == Self::default() {
            let rule = "must name what to change: title, description, priceLovelace, category or previewMedia";
            return Err(Error::of_field(ErrorCode::MissingField, "body", rule));
        }
        Ok(changes)
    }

    /// Returns whether the changes include a public text, which must not reveal most of the content.
    pub(crate) const fn has_texts(&self) -> bool {
        self.title.is_some() || self.description.is_some()
    }

    /// Returns the changed listing. `content` is the listing's content, which is needed only if a public text changes.
    ///
    /// # Errors
    /// Returns an error if a changed field and an unchanged one together break a rule.
    pub(crate) fn apply(&self, listing: &Listing, content: Option<&str>) -> Result<Listing, Error> {
        let Self { title, description, price, preview_media, category } = self.clone();
        let changed = Listing {
            title: title.unwrap_or_else(|| listing.title.clone()),
            description: description.unwrap_or_else(|| listing.description.clone()),
            price_lovelace: price.unwrap_or(listing.price_lovelace),
            preview_media: preview_media.unwrap_or_else(|| listing.preview_media.clone()),
            category: category.map_or_else(|| listing.category.clone(), |category| category.map(str::to_owned)),
            sales: None,
            seller_reputation: None,
            ..listing.clone()
        };
        check_price(changed.price_lovelace, &changed.modes)?;
        if let Some(content) = content {
            private(content, &changed.title, &changed.description)?;
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
    }
}
