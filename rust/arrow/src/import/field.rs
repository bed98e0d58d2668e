//! The schema of a stream, copied out of its structures.

use std::ffi::CStr;

use fleetcast_core::model::error::{Error, Result};

use crate::interface::ArrowSchema;

/// Depth to which types are read, so that a hostile schema cannot exhaust the stack. Example: a
/// list of structs of texts has depth three.
const DEPTH_MAX: usize = 8;

/// One column, or a part of a column.
#[derive(Clone, Debug)]
pub(super) struct ArrowField {
    pub(super) name: String,
    /// Type in the notation of the interface. If there is a dictionary, the type of its indices.
    pub(super) format: String,
    pub(super) children: Vec<Self>,
    pub(super) dictionary: Option<Box<Self>>,
}

/// An error about the caller's input, in words.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::Invalid { message: message.into() }
}

impl ArrowField {
    /// Copies the schema that `schema` describes.
    ///
    /// # Safety
    /// `schema` is live, as the interface defines it.
    pub(super) unsafe fn of(schema: &ArrowSchema, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            return Err(invalid("the stream has types that nest too deep"));
        }
        let text = |text: *const std::ffi::c_char| {
            if text.is_null() {
                return Ok(String::new());
            }
            // SAFETY: texts of a live schema end with NUL.
            let text = unsafe { CStr::from_ptr(text) }.to_str();
            text.map(str::to_owned).map_err(|_| invalid("a column whose name is not UTF-8"))
        };
        let count = usize::try_from(schema.n_children).unwrap_or(0);
        let mut children = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: a live schema has `n_children` children, all live.
            children.push(unsafe { Self::of(&**schema.children.add(index), depth + 1)? });
        }
        let dictionary = if schema.dictionary.is_null() {
            None
        } else {
            // SAFETY: the dictionary of a live schema is live.
            Some(Box::new(unsafe { Self::of(&*schema.dictionary, depth + 1)? }))
        };
        let (name, format) = (text(schema.name)?, text(schema.format)?);
        let field = Self { name, format, children, dictionary };
        // Code that reads a column of another type looks for its values, not for indices.
        if field.dictionary.is_some() && !field.is_integer() {
            let name = &field.name;
            return Err(invalid(format!("column {name:?} has a dictionary without indices")));
        }
        Ok(field)
    }

    /// Names of the columns, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.children.iter().map(|child| child.name.as_str()).collect();
        names.join(", ")
    }

    /// The type in words, for messages.
    pub(super) fn type_name(&self) -> String {
        if let Some(dictionary) = &self.dictionary {
            return format!("a dictionary of {}", dictionary.type_name());
        }
        let name = match self.format.as_str() {
            "n" => "null",
            "b" => "boolean",
            "u" | "U" | "vu" => "text",
            "g" | "f" | "e" => "floating point",
            "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L" => "integer",
            "z" | "Z" | "vz" => "binary",
            "+m" => "map",
            "+l" | "+L" => "list",
            "+s" => "struct",
            other if other.starts_with("ts") => "timestamp",
            other if other.starts_with("td") => "date",
            other if other.starts_with("d:") => "decimal",
            other => other,
        };
        name.to_owned()
    }

    pub(super) fn is_text(&self) -> bool {
        match &self.dictionary {
            Some(texts) => texts.is_text(),
            None => matches!(self.format.as_str(), "u" | "U" | "vu"),
        }
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.format.as_str(), "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L")
    }

    pub(super) fn is_u64(&self) -> bool {
        self.format == "L"
    }

    /// Returns the nanoseconds in the unit of a timestamp or date. Example: milliseconds give
    /// 1,000,000.
    pub(super) fn unit_ns(&self) -> Option<i64> {
        match self.format.get(..3)? {
            "tss" => Some(1_000_000_000),
            "tsm" | "tdm" => Some(1_000_000),
            "tsu" => Some(1_000),
            "tsn" => Some(1),
            "tdD" => Some(86_400_000_000_000),
            _ => None,
        }
    }

    /// Returns the key and value fields of a map, or of a list of structs of two texts.
    pub(super) fn entry(&self) -> Option<(&Self, &Self)> {
        let [entries] = self.children.as_slice() else { return None };
        let is_list = matches!(self.format.as_str(), "+m" | "+l" | "+L");
        match entries.children.as_slice() {
            [key, value]
                if is_list && entries.format == "+s" && key.is_text() && value.is_text() =>
            {
                Some((key, value))
            }
            _ => None,
        }
    }
}
