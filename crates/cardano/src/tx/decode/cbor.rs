//! A typed cursor over the CBOR of a transaction (RFC 8949). The CBOR must have been checked to be well formed.

/// Maximum nesting depth of arrays, maps and tags. Transactions that wallets make have fewer than 20 levels.
pub const MAX_CBOR_DEPTH: usize = 64;

/// Reason why bytes are not CBOR of the kind that the ledger accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// The bytes end before the item is complete.
    #[error("it ends too early")]
    Truncated,
    /// Further bytes follow the item.
    #[error("there are bytes after its end")]
    Trailing,
    /// Arrays, maps and tags are nested deeper than [`MAX_CBOR_DEPTH`].
    #[error("it is nested deeper than {MAX_CBOR_DEPTH}")]
    TooDeep,
    /// A number or length takes more bytes than it needs.
    #[error("a number or length is not in its shortest form")]
    NotShortest,
    /// The item contains a float, `undefined` or a reserved value, which the ledger does not use.
    #[error("it has a value of a kind that the ledger does not use")]
    Unsupported,
    /// A break is outside an item of indefinite length, a map has a key without a value, or a chunk of a string has the
    /// wrong type.
    #[error("its structure is not valid")]
    Structure,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// A map has the same key twice.
    #[error("a map has the same key twice")]
    DuplicateKey,
    /// An item has an unexpected type.
    #[error("an item is of an unexpected type")]
    Type,
}

/// The decoded header of a CBOR item. A length of `None` means indefinite length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemHead {
    Uint(u64),
    /// A negative integer, -1 - n, where n is the contained number.
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

/// Number of unread items of an array, or of unread pairs of a map; `None` if the length is indefinite.
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

    /// Calls `read`, and returns its result together with the bytes that it consumed.
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

    /// Reads a byte string of definite length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], CborError> {
        match self.head()? {
            ItemHead::Bytes(Some(length)) => self.take(length),
            _ => Err(CborError::Type),
        }
    }

    /// Reads a byte string that must have `N` bytes.
    pub(super) fn hash<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        self.bytes()?.try_into().map_err(|_| CborError::Type)
    }

    /// Reads a text of definite length, as bytes.
    pub(super) fn text(&mut self) -> Result<&'a [u8], CborError> {
        match self.head()? {
            ItemHead::Text(Some(length)) => self.take(length),
            _ => Err(CborError::Type),
        }
    }

    /// Reads the header of an array or map with a fixed set of fields (a body, an output). Its length must be definite:
    /// the ledger also accepts the indefinite form, but no wallet writes it and other decoders reject it.
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

    /// Reads the header of a set: an array, with or without CBOR tag 258.
    pub(super) fn set(&mut self) -> Result<Items, CborError> {
        if self.peek()? == ItemHead::Tag(258) {
            self.head()?;
        }
        self.array()
    }

    pub(super) fn tag(&mut self, expected: u64) -> Result<(), CborError> {
        if self.head()? == ItemHead::Tag(expected) { Ok(()) } else { Err(CborError::Type) }
    }

    /// Returns whether another item (in a map, another pair) follows. Consumes the break that ends a container of
    /// indefinite length.
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

    /// Returns an error unless another item (in a map, another pair) follows.
    pub(super) fn expect(&mut self, items: &mut Items) -> Result<(), CborError> {
        if self.more(items)? { Ok(()) } else { Err(CborError::Type) }
    }

    /// Returns an error if another item (in a map, another pair) follows.
    pub(super) fn end(&mut self, items: &mut Items) -> Result<(), CborError> {
        if self.more(items)? { Err(CborError::Type) } else { Ok(()) }
    }
}
