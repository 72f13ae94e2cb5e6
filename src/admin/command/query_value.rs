//! A value in a query string, as text or as a number.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{Error as _, IntoDeserializer, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// A value in a query string, with its name for error messages.
pub struct QueryValue<'q> {
    pub name: Cow<'q, str>,
    pub value: Cow<'q, str>,
}

impl<'de> IntoDeserializer<'de> for QueryValue<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for QueryValue<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(
            self.value.parse().map_err(|_| {
                Error::custom(format_args!("`{}` must be true or false", self.name))
            })?,
        )
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(
            self.value
                .parse()
                .map_err(|_| Error::custom(format_args!("`{}` must be a number", self.name)))?,
        )
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
