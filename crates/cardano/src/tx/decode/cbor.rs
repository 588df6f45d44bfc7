//! The CBOR that a transaction may consist of (RFC 8949): a typed cursor over bytes that were checked to be well
//! formed.

/// How deep arrays, maps and tags may nest. Wallets' transactions nest less than 20 deep.
pub const MAX_CBOR_DEPTH: usize = 64;

/// Why bytes are not CBOR of the kind that a ledger reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// The bytes end within an item.
    #[error("it ends too early")]
    Truncated,
    /// There are bytes after the item.
    #[error("there are bytes after its end")]
    Trailing,
    /// Nested deeper than [`MAX_CBOR_DEPTH`].
    #[error("it is nested deeper than {MAX_CBOR_DEPTH}")]
    TooDeep,
    /// A number or length takes more bytes than it needs.
    #[error("a number or length is not in its shortest form")]
    NotShortest,
    /// Floats, undefined, reserved values: the ledger has none.
    #[error("it has a value of a kind that the ledger does not use")]
    Unsupported,
    /// A break outside an indefinite item, a map with a key and no value, chunks of another type.
    #[error("its items do not add up")]
    Structure,
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// A map has the same key twice.
    #[error("a map has the same key twice")]
    DuplicateKey,
    /// An item is of another type than expected.
    #[error("an item is of an unexpected type")]
    Type,
}

/// The beginning of an item. A length of `None` is indefinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemHead {
    Uint(u64),
    /// The number -1 - n.
    Nint(u64),
    Bytes(Option<u64>),
    Text(Option<u64>),
    Array(Option<u64>),
    Map(Option<u64>),
    Tag(u64),
    Bool(bool),
    Null,
    Break,
}

/// What is left of an array, or of a map (counted in pairs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Items(Option<u64>);

impl Items {
    pub(super) const fn exactly(count: u64) -> Self {
        Self(Some(count))
    }
}

/// A cursor over CBOR.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The bytes of what `read` reads.
    pub(super) fn spanned<T, E>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<(T, &'a [u8]), E> {
        let start = self.at;
        let value = read(self)?;
        Ok((value, self.bytes.get(start..self.at).unwrap_or_default()))
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], CborError> {
        let count = usize::try_from(count).map_err(|_| CborError::Truncated)?;
        let end = self.at.checked_add(count).ok_or(CborError::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(CborError::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    fn argument(&mut self, info: u8) -> Result<u64, CborError> {
        let (width, least) = match info {
            0..=23 => return Ok(info.into()),
            24 => (1, 24),
            25 => (2, 1 << 8),
            26 => (4, 1 << 16),
            27 => (8, 1 << 32),
            _ => return Err(CborError::Unsupported),
        };
        let value = self.take(width)?.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        if value < least { Err(CborError::NotShortest) } else { Ok(value) }
    }

    pub(super) fn head(&mut self) -> Result<ItemHead, CborError> {
        let &initial = self.take(1)?.first().ok_or(CborError::Truncated)?;
        let (major, info) = (initial >> 5, initial & 0x1f);
        let indefinite = info == 31;
        let length = |reader: &mut Self| if indefinite { Ok(None) } else { reader.argument(info).map(Some) };
        match major {
            0 => self.argument(info).map(ItemHead::Uint),
            1 => self.argument(info).map(ItemHead::Nint),
            2 => length(self).map(ItemHead::Bytes),
            3 => length(self).map(ItemHead::Text),
            4 => length(self).map(ItemHead::Array),
            5 => length(self).map(ItemHead::Map),
            6 => self.argument(info).map(ItemHead::Tag),
            _ => match info {
                20 => Ok(ItemHead::Bool(false)),
                21 => Ok(ItemHead::Bool(true)),
                22 => Ok(ItemHead::Null),
                31 => Ok(ItemHead::Break),
                _ => Err(CborError::Unsupported),
            },
        }
    }

    pub(super) fn peek(&self) -> Result<ItemHead, CborError> {
        self.clone().head()
    }

    pub(super) fn uint(&mut self) -> Result<u64, CborError> {
        match self.head()? {
            ItemHead::Uint(value) => Ok(value),
            _ => Err(CborError::Type),
        }
    }

    pub(super) fn bool(&mut self) -> Result<bool, CborError> {
        match self.head()? {
            ItemHead::Bool(value) => Ok(value),
            _ => Err(CborError::Type),
        }
    }

    /// Bytes in one piece.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], CborError> {
        match self.head()? {
            ItemHead::Bytes(Some(length)) => self.take(length),
            _ => Err(CborError::Type),
        }
    }

    /// Bytes in one piece, of a known length.
    pub(super) fn hash<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        self.bytes()?.try_into().map_err(|_| CborError::Type)
    }

    /// A text in one piece, as its bytes.
    pub(super) fn text(&mut self) -> Result<&'a [u8], CborError> {
        match self.head()? {
            ItemHead::Text(Some(length)) => self.take(length),
            _ => Err(CborError::Type),
        }
    }

    /// The head of an array or map of fixed shape (a body, an output): its length is written down. The ledger's decoder
    /// would also take it without; no wallet writes that, and other decoders refuse it.
    pub(super) fn record(
        &mut self,
        head: impl FnOnce(&mut Self) -> Result<Items, CborError>,
    ) -> Result<Items, CborError> {
        match head(self)? {
            Items(None) => Err(CborError::Type),
            items => Ok(items),
        }
    }

    pub(super) fn array(&mut self) -> Result<Items, CborError> {
        match self.head()? {
            ItemHead::Array(length) => Ok(Items(length)),
            _ => Err(CborError::Type),
        }
    }

    pub(super) fn map(&mut self) -> Result<Items, CborError> {
        match self.head()? {
            ItemHead::Map(length) => Ok(Items(length)),
            _ => Err(CborError::Type),
        }
    }

    /// An array that the ledger calls a set: with or without tag 258.
    pub(super) fn set(&mut self) -> Result<Items, CborError> {
        if self.peek()? == ItemHead::Tag(258) {
            self.head()?;
        }
        self.array()
    }

    pub(super) fn tag(&mut self, expected: u64) -> Result<(), CborError> {
        if self.head()? == ItemHead::Tag(expected) { Ok(()) } else { Err(CborError::Type) }
    }

    /// Whether another item (or pair) follows; consumes the break of an indefinite container.
    pub(super) fn more(&mut self, items: &mut Items) -> Result<bool, CborError> {
        match &mut items.0 {
            Some(0) => Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                Ok(true)
            }
            None if self.peek()? == ItemHead::Break => {
                self.head()?;
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// Another item (or pair) must follow.
    pub(super) fn expect(&mut self, items: &mut Items) -> Result<(), CborError> {
        if self.more(items)? { Ok(()) } else { Err(CborError::Type) }
    }

    /// No other item (or pair) may follow.
    pub(super) fn end(&mut self, items: &mut Items) -> Result<(), CborError> {
        if self.more(items)? { Err(CborError::Type) } else { Ok(()) }
    }
}
