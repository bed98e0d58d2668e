//! Numbers of columns of any numeric type.

use std::borrow::Cow;

use fleetcast_core::model::error::Result;
use fleetcast_core::wire::columnar::InputValues;

use super::field::invalid;
use super::texts::TextColumn;
use super::view::{ArrayView, Primitive};

impl<'a> ArrayView<'a> {
    fn numbers<T: Primitive, N>(&self, to: impl Fn(T) -> N) -> Result<Vec<N>> {
        let numbers = self.buffer::<T>(1, self.start, self.rows)?;
        Ok(numbers.iter().map(|number| to(*number)).collect())
    }

    /// Returns integers. Integers beyond `i64` become the nearest value of `i64`.
    pub(super) fn integers(&self) -> Result<Cow<'a, [i64]>> {
        Ok(Cow::Owned(match self.field.format.as_str() {
            "c" => self.numbers::<i8, _>(i64::from)?,
            "C" => self.numbers::<u8, _>(i64::from)?,
            "s" => self.numbers::<i16, _>(i64::from)?,
            "S" => self.numbers::<u16, _>(i64::from)?,
            "i" | "tdD" => self.numbers::<i32, _>(i64::from)?,
            "I" => self.numbers::<u32, _>(i64::from)?,
            "L" => self.numbers::<u64, _>(|number| i64::try_from(number).unwrap_or(i64::MAX))?,
            _ => return Ok(Cow::Borrowed(self.buffer(1, self.start, self.rows)?)),
        }))
    }

    /// Returns unsigned integers of 64 bits as signed integers of the same bits.
    pub(super) fn bits_of_u64(&self) -> Result<Vec<i64>> {
        self.numbers(u64::cast_signed)
    }

    /// Returns numbers as doubles, rounded to the nearest.
    #[expect(clippy::cast_precision_loss, reason = "numbers become the nearest double, as in JSON")]
    fn doubles(&self) -> Result<Cow<'a, [f64]>> {
        Ok(match self.field.format.as_str() {
            "g" => Cow::Borrowed(self.buffer(1, self.start, self.rows)?),
            "f" => Cow::Owned(self.numbers::<f32, _>(f64::from)?),
            "L" => Cow::Owned(self.numbers::<u64, _>(|number| number as f64)?),
            _ => Cow::Owned(self.integers()?.iter().map(|number| *number as f64).collect()),
        })
    }

    /// Returns the values of a field.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the type is not numbers,
    /// booleans or texts, or if a text is not UTF-8.
    pub(super) fn field_values(&self) -> Result<InputValues<'a>> {
        let field = self.field;
        if field.is_text() {
            return Ok(InputValues::Text(TextColumn::new(self)?.all_utf8()?));
        }
        if field.dictionary.is_none() {
            if field.format == "b" {
                return Ok(InputValues::Bool(self.bools()?));
            }
            if field.is_integer() || matches!(field.format.as_str(), "g" | "f") {
                return Ok(InputValues::Float(self.doubles()?));
            }
        }
        Err(invalid(format!(
            "column {:?} is {}: a field is a number, a boolean or a text",
            field.name,
            field.type_name()
        )))
    }
}
