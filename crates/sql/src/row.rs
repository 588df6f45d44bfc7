//! Converts rows to Rust values: each field of a struct is read from the column of the same name, and [`Both`] is read
//! as two structs. Any other type is read from the row's only column.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// Wrapper that deserializes an `R` from a row, given as an object with a member for each column.
pub(crate) struct Row<R>(pub(crate) R);

impl<'de, R: Deserialize<'de>> Deserialize<'de> for Row<R> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        R::deserialize(RowDeserializer(object)).map(Self)
    }
}

/// A deserializer for one row, given as an object with a member for each column.
struct RowDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> RowDeserializer<D> {
    fn only_column(self) -> Result<Value, D::Error> {
        let mut columns = Map::deserialize(self.0)?.into_iter();
        match (columns.next(), columns.next()) {
            (Some((_, value)), None) => Ok(value),
            _ => Err(D::Error::custom("a row without exactly one column")),
        }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RowDeserializer<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_seq(Parts(Map::deserialize(self.0)?.into(), PhantomData))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.only_column()?.deserialize_any(visitor).map_err(D::Error::custom)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.only_column()?.deserialize_option(visitor).map_err(D::Error::custom)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.only_column()?.deserialize_enum(name, variants, visitor).map_err(D::Error::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_bool(flag(self.only_column()?).map_err(D::Error::custom)?)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple map
        identifier ignored_any
    }
}

/// A row of a join, with the columns of two structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both<A, B>(pub A, pub B);

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Both<A, B> {
    fn deserialize<D: Deserializer<'de>>(row: D) -> Result<Self, D::Error> {
        struct BothVisitor<A, B>(PhantomData<(A, B)>);

        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for BothVisitor<A, B> {
            type Value = Both<A, B>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row with the columns of two structs")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut parts: S) -> Result<Self::Value, S::Error> {
                // Both parts are read even if the first fails, so that `columns_of` learns the columns of both.
                let (first, second) = (parts.next_element(), parts.next_element());
                first?.zip(second?).map(|(first, second)| Both(first, second)).ok_or_else(|| S::Error::custom("no row"))
            }
        }

        row.deserialize_tuple_struct("Both", 2, BothVisitor(PhantomData))
    }
}

/// Deserializer for the two structs of a [`Both`]. Each struct is read from all columns of the row.
struct Parts<E>(Value, PhantomData<E>);

impl<'de, E: Error> SeqAccess<'de> for Parts<E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, part: T) -> Result<Option<T::Value>, E> {
        part.deserialize(RowDeserializer(self.0.clone())).map(Some).map_err(E::custom)
    }
}

/// Reads a `bool` from a column that holds 0 or 1: `#[serde(deserialize_with = "sql::flag")]`.
///
/// # Errors
/// Returns an error if the column holds any other value.
pub fn flag<'de, D: Deserializer<'de>>(column: D) -> Result<bool, D::Error> {
    match u8::deserialize(column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(D::Error::custom("a flag that is neither 0 nor 1")),
    }
}

/// Reads a value from a column that holds JSON text: `#[serde(deserialize_with = "sql::json")]`. SQL NULL is read as
/// JSON's `null`.
///
/// # Errors
/// Returns an error if the text is not the JSON of a `T`.
pub fn json<'de, D: Deserializer<'de>, T: DeserializeOwned>(column: D) -> Result<T, D::Error> {
    let text: Option<Cow<'_, str>> = Option::deserialize(column)?;
    serde_json::from_str(text.as_deref().unwrap_or("null")).map_err(D::Error::custom)
}

/// The columns that a row type expects of its query.
#[cfg(feature = "sqlite")]
#[derive(Debug)]
pub enum Columns {
    /// No columns, because the query returns no rows.
    None,
    /// Exactly one column; its name does not matter.
    One,
    /// The columns of these names, in any order.
    Named(Vec<&'static str>),
}

/// Returns the columns that a row type expects. To find them, the type is deserialized from a deserializer that only
/// records the requested field names.
#[cfg(feature = "sqlite")]
pub(crate) fn columns_of<R: DeserializeOwned>() -> Columns {
    struct Asking<'a>(&'a mut Columns);

    impl<'de> Deserializer<'de> for Asking<'_> {
        type Error = serde_json::Error;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            match self.0 {
                Columns::Named(names) => names.extend(fields),
                columns => *columns = Columns::Named(fields.to_vec()),
            }
            Err(Self::Error::custom("no row is read"))
        }

        fn deserialize_tuple_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            _: usize,
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            visitor.visit_seq(self)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            visitor.visit_newtype_struct(self)
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::custom("no row is read"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            seq tuple map enum identifier ignored_any
        }
    }

    impl<'de> SeqAccess<'de> for Asking<'_> {
        type Error = serde_json::Error;

        fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, part: T) -> Result<Option<T::Value>, Self::Error> {
            part.deserialize(Asking(self.0)).map(Some)
        }
    }

    let mut columns = Columns::One;
    drop(R::deserialize(Asking(&mut columns)));
    columns
}
