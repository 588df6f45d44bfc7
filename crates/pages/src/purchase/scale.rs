//! An escrow's deadlines, drawn to scale: from the lock to the end of what may be disputed.
//!
//! ```text
//!  locked       submit_result        unlock      external_dispute_unlock
//!    ├─ delivery ─────┤─ dispute ───────┤─ payout ───────┤ arbiter
//!    ●     ●                  │ now
//! ```

use maud::{Markup, html};

use crate::{
    format::{at, distance},
    view::{Deadlines, Purchase},
};

/// A time on the scale.
struct Scale {
    from: u64,
    to: u64,
}

impl Scale {
    /// Where a time is, in per cent of the width, for an attribute.
    fn at(&self, time: u64) -> String {
        percent(self.permille(time))
    }

    fn permille(&self, time: u64) -> u64 {
        let span = self.to.saturating_sub(self.from).max(1);
        let passed = time.clamp(self.from, self.to.max(self.from)).saturating_sub(self.from);
        passed.saturating_mul(1_000).checked_div(span).unwrap_or(0)
    }

    fn width(&self, from: u64, to: u64) -> String {
        percent(self.permille(to).saturating_sub(self.permille(from)))
    }
}

fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// A part of the scale: until when, and what it is for.
fn spans(deadlines: Deadlines) -> [(&'static str, u64, &'static str); 3] {
    [
        (
            "delivery",
            deadlines.submit_result,
            "The seller proves the delivery; without a proof, the buyer takes the money back",
        ),
        ("dispute", deadlines.unlock, "The buyer may dispute what came; without a dispute, the seller is paid"),
        (
            "payout",
            deadlines.external_dispute_unlock,
            "The seller collects; a dispute is decided by the arbiter, from the end of this on",
        ),
    ]
}

/// The drawing, and its legend; nothing for what has no escrow. `now`, POSIX ms, where the deadlines still matter.
pub fn drawn(purchase: &Purchase, now: Option<u64>) -> Markup {
    let (Some(deadlines), Some(first)) = (Deadlines::of(purchase), purchase.events.first()) else { return html! {} };
    let scale = Scale { from: first.at, to: deadlines.external_dispute_unlock };
    let spans = spans(deadlines);
    let starts = [first.at, deadlines.submit_result, deadlines.unlock];
    html! {
        svg.scale width="100%" height="48" role="img" aria-label="The deadlines to scale; the list below has them in words" {
            @for (start, (name, end, _)) in starts.into_iter().zip(spans) {
                rect class=(name) x=(scale.at(start)) y="18" width=(scale.width(start, end)) height="14" {}
            }
            @for event in &purchase.events { circle cx=(scale.at(event.at)) cy="25" r="6" {} }
            @if let Some(now) = now.filter(|now| *now <= scale.to) {
                line.now x1=(scale.at(now)) x2=(scale.at(now)) y1="6" y2="44" {}
            }
        }
        ol.legend {
            @for (name, end, words) in spans {
                li.{ (name) } {
                    span { (words) }
                    span { "until " (at(end)) @if let Some(now) = now { " · " (distance(end, now)) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_on_the_scale_where_it_lies_in_time() {
        let scale = Scale { from: 1_000, to: 3_000 };
        for (time, place) in [(0, "0.0%"), (1_000, "0.0%"), (2_000, "50.0%"), (2_999, "99.9%"), (9_000, "100.0%")] {
            assert_eq!(scale.at(time), place);
        }
        assert_eq!(scale.width(1_000, 1_500), "25.0%");
        assert_eq!(Scale { from: 5, to: 5 }.at(7), "0.0%");
        assert_eq!(Scale { from: 5, to: 1 }.at(7), "0.0%");
    }
}
