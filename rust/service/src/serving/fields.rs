//! Header fields that all answers have.

/// Fields of all answers: common fields, and grants to the origins on a list. Error answers carry
/// the grants too, because browsers could not read them otherwise.
#[derive(Clone, Debug, Default)]
pub struct CommonFields {
    origins: Vec<String>,
}

impl CommonFields {
    /// Makes fields with grants to these origins.
    #[must_use]
    pub fn new(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// Returns the fields of the answer to a request with this id and origin. `allow` holds the
    /// methods of the path, for the answer to OPTIONS.
    #[must_use]
    pub fn of<'t>(
        &'t self,
        request_id: &'t str,
        origin: Option<&[u8]>,
        allow: Option<&'t str>,
    ) -> Vec<(&'static str, &'t str)> {
        let mut fields = vec![
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-request-id", request_id),
        ];
        if self.origins.is_empty() {
            return fields;
        }
        fields.push(("vary", "Origin"));
        let granted = self.origins.iter().find(|each| origin == Some(each.as_bytes()));
        if let Some(origin) = granted {
            fields.push(("access-control-allow-origin", origin));
            fields.push(("access-control-expose-headers", "Retry-After, X-Request-Id"));
            if let Some(allow) = allow {
                fields.push(("access-control-allow-methods", allow));
                fields.push(("access-control-allow-headers", "x-api-key, content-type"));
            }
        }
        fields
    }
}
