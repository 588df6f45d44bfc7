//! The preview picture of a listing (Open Graph), `/listings/{id}/picture.png`: its cover with title, category and price.
//!
//! Sites and messengers render no SVG in previews, and rendering one here (`resvg`) would need a font of several megabytes.
//! So the picture is drawn with a bitmap font, at half the recommended width, into a palette of 256 colours: 32 steps between
//! the cover's two tones in 8 mixtures with white.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "pixels of a picture of this size, and letters of a listing's title"
)]

use market::DeliveryMode;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};

use crate::{
    preview::{self, look},
    view::Listing,
};

/// Width of the picture in pixels.
pub const WIDTH: u16 = 600;
/// Height of the picture in pixels.
pub const HEIGHT: u16 = 315;
const COLUMNS: usize = WIDTH as usize;
const ROWS: usize = HEIGHT as usize;
/// Distance of texts from the picture's edges in pixels.
const MARGIN: usize = 32;
/// Number of colours between a cover's two tones. Each is also available in several mixtures with white.
const STEPS: usize = 32;
const MIXTURES: usize = 8;
/// Index of pure white among the mixtures of a colour with white. Texts are drawn in pure white.
const WHITE: usize = MIXTURES - 1;
const WEIGHT: FontWeight = FontWeight::Bold;
const LARGE: RasterHeight = RasterHeight::Size32;
const SMALL: RasterHeight = RasterHeight::Size20;
/// Maximum number of lines of a title.
const LINES: usize = 4;
const LEADING: usize = 40;

/// The two tones of each cover, as in the stylesheet (`--tone`).
const TONES: [[[u8; 3]; 2]; preview::TONES] = [
    [[0x24, 0x40, 0x8f], [0x1f, 0x7a, 0x8c]],
    [[0x5b, 0x2a, 0x86], [0xa8, 0x32, 0x79]],
    [[0x0f, 0x5f, 0x4a], [0x2b, 0x7a, 0x3d]],
    [[0xb0, 0x2a, 0x4c], [0x8a, 0x3b, 0x12]],
    [[0x23, 0x2a, 0x3b], [0x4b, 0x5b, 0x80]],
    [[0x12, 0x4e, 0x78], [0x5b, 0x2a, 0x86]],
];

/// Draws a listing's preview picture as a PNG.
///
/// # Errors
/// Returns an error of the encoder, although none is expected because it writes to memory.
pub fn png(listing: &Listing) -> Result<Vec<u8>, EncodingError> {
    let (tone, pattern) = look(listing);
    let mut canvas = Canvas::decorated(pattern);
    canvas.write("Surety", (MARGIN, MARGIN), SMALL);
    let category = legible(listing.category.as_deref().unwrap_or("Prompt"));
    canvas.write(&category, (right(&category, SMALL), MARGIN), SMALL);
    let room = (COLUMNS - MARGIN * 2).checked_div(get_raster_width(WEIGHT, LARGE)).unwrap_or(1);
    let lines = wrapped(&legible(&listing.title), room);
    let mut top = MARGIN * 2 + 16;
    for line in &lines {
        canvas.write(line, (MARGIN, top), LARGE);
        top += LEADING;
    }
    let bottom = ROWS - MARGIN - 32;
    canvas.write(&listing.price_lovelace.display_tada(), (MARGIN, bottom), LARGE);
    let promise = if listing.offers(DeliveryMode::Protected) { "Protected purchase" } else { "Instant" };
    canvas.write(promise, (right(promise, SMALL), bottom + 8), SMALL);
    canvas.encoded(tone)
}

/// Returns the x coordinate at which a text must start to end at the right margin.
fn right(text: &str, size: RasterHeight) -> usize {
    let width = text.chars().count().saturating_mul(get_raster_width(WEIGHT, size));
    (COLUMNS - MARGIN).saturating_sub(width)
}

/// Removes characters that the font lacks. The font has only Latin scripts.
fn legible(text: &str) -> String {
    let plain = text.chars().map(|c| match c {
        '“' | '”' => '"',
        '’' | '‘' => '\'',
        '–' | '—' => '-',
        other => other,
    });
    let written: String = plain.filter(|c| *c == ' ' || get_raster(*c, WEIGHT, LARGE).is_some()).collect();
    written.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Wraps a text between words into lines of at most `most` characters. A text that is too long is truncated and ends
/// with dots.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let part: String = rest.drain(..rest.len().min(most)).collect();
            match lines.last_mut() {
                Some(line) if line.chars().count().saturating_add(part.len()) < most => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
    }
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            *last = last.chars().take(most.saturating_sub(3)).chain("...".chars()).collect();
        }
    }
    lines
}

/// Pixels of the picture, row by row. Each value is the amount of white in the pixel's colour, from 0 to [`WHITE`].
struct Canvas(Vec<usize>);

impl Canvas {
    /// Creates a canvas with a cover's pattern, as in the stylesheet.
    fn decorated(pattern: usize) -> Self {
        let is_drawn = |x: usize, y: usize| {
            let near = |left: usize, top: usize, radius: usize| {
                x.abs_diff(left).pow(2) + y.abs_diff(top).pow(2) < radius.pow(2)
            };
            match pattern {
                0 => near(510, 32, 190),
                1 => (x + y) % 14 < 2,
                2 => x % 16 < 2 && y % 16 < 2,
                3 => near(90, 346, 260),
                _ => x.is_multiple_of(22) || y.is_multiple_of(22),
            }
        };
        Self((0..COLUMNS * ROWS).map(|at| usize::from(is_drawn(at % COLUMNS, at / COLUMNS))).collect())
    }

    fn write(&mut self, text: &str, (left, top): (usize, usize), size: RasterHeight) {
        let mut x = left;
        for glyph in text.chars().filter_map(|c| get_raster(c, WEIGHT, size)) {
            for (down, row) in glyph.rows().enumerate() {
                for (along, intensity) in row.iter().enumerate() {
                    let (x, y) = (x + along, top + down);
                    if let Some(pixel) = self.0.get_mut(y * COLUMNS + x).filter(|_| x < COLUMNS) {
                        // The brightest of 32 intensities is white. Pixels only become brighter.
                        *pixel = usize::from(intensity / 32).min(WHITE).max(*pixel);
                    }
                }
            }
            x += glyph.width();
        }
    }

    fn encoded(&self, tone: usize) -> Result<Vec<u8>, EncodingError> {
        let colour = |(at, mixture): (usize, &usize)| {
            let step = (at % COLUMNS + at / COLUMNS) * STEPS / (COLUMNS + ROWS);
            u8::try_from(step * MIXTURES + mixture).unwrap_or(u8::MAX)
        };
        let pixels: Vec<u8> = self.0.iter().enumerate().map(colour).collect();
        let mut file = vec![];
        let mut encoder = Encoder::new(&mut file, WIDTH.into(), HEIGHT.into());
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_palette(palette(tone));
        encoder.set_compression(Compression::Balanced);
        encoder.set_filter(Filter::NoFilter);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(file)
    }
}

/// Returns the palette of a cover: all colours between the cover's tones, in all mixtures with white.
fn palette(tone: usize) -> Vec<u8> {
    let [from, to] = TONES.get(tone).copied().unwrap_or_default();
    let mixed = |from: u8, to: u8, part: usize, of: usize| {
        let sum = usize::from(from) * (of - part) + usize::from(to) * part;
        u8::try_from(sum / of).unwrap_or(u8::MAX)
    };
    let steps = (0..STEPS).flat_map(|step| (0..MIXTURES).map(move |mixture| (step, mixture)));
    steps
        .flat_map(|(step, mixture)| {
            from.into_iter().zip(to).map(move |(from, to)| {
                let own = mixed(from, to, step, STEPS - 1);
                mixed(own, u8::MAX, mixture, WHITE)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing(title: &str) -> Listing {
        serde_json::from_value(json!({
            "id": "lst_1", "title": title, "description": "", "priceLovelace": "12500000",
            "sellerAddress": "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv",
            "modes": ["instant", "protected"], "contentHash": "0".repeat(64), "category": "Hero",
        }))
        .unwrap()
    }

    #[test]
    fn any_title_gives_a_small_picture_of_the_declared_size() {
        /// Maximum size of a picture in bytes. Other sites fetch it for each link to a listing.
        const MAX_BYTES: usize = 20_000;
        for title in ["Aurora hero", "", "標題", &"W".repeat(120), &"word ".repeat(24), "\u{202e}“Žluťoučký” — kůň"]
        {
            let file = png(&listing(title)).unwrap();
            let decoder = png::Decoder::new(std::io::Cursor::new(&file));
            let reader = decoder.read_info().unwrap();
            assert_eq!((reader.info().width, reader.info().height), (u32::from(WIDTH), u32::from(HEIGHT)));
            assert!(file.len() < MAX_BYTES, "{title}: {} bytes", file.len());
        }
        assert_ne!(png(&listing("Aurora")).unwrap(), png(&listing("Borealis")).unwrap());
    }

    #[test]
    fn a_title_is_cut_between_words_and_at_the_fourth_line() {
        assert_eq!(wrapped("Newsletter signup that respects", 18), ["Newsletter signup", "that respects"]);
        assert_eq!(wrapped(&"w".repeat(10), 4), ["wwww", "wwww", "ww"]);
        let long = wrapped(&"word ".repeat(24), 9);
        assert_eq!((long.len(), long.last().map(String::as_str)), (4, Some("word w...")));
        assert_eq!(legible("\u{202e}“Žluť” 標 — x"), "\"Žluť\" - x");
    }
}
